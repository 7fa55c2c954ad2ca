"""The run on a terminal: a table that lives on stderr while it runs, and the last one on stdout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rods.reports.summary import EpochSummary, Moment, RunSummary
from rods.reports.uplift import Uplift

PLAIN_WIDTH = 160
MAX_WORD = 48
ZONES = ("mastered", "boundary", "hard", "none")
EMPTY = ("", "", "")
COLUMNS = (
    "epoch",
    "pool",
    "held-out",
    "flat",
    "m/b/h/none",
    "seeds",
    "verified",
    "rejected",
    "injected",
    "retired",
    "tasks",
    "digest",
    "s",
)


@dataclass(frozen=True, slots=True)
class Status:
    """The line under the table.

    restarts: of worker processes.
    phase: what the run waits for, in a few words.
    """

    moment: Moment
    restarts: int = 0
    phase: str = ""


def epoch_table(rows: Sequence[EpochSummary]) -> Table:
    """One line an epoch. pool, held-out: mean progress. m/b/h/none: groups by zone, mastered, boundary, hard or
    none. tasks: of the pool after the epoch, originals + variants."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "digest" else "right")
    for row in rows:
        table.add_row(*[Text(cell) for cell in _cells(row)])
    return table


def reason_table(rows: Sequence[EpochSummary]) -> Table:
    """Why variants were rejected and by which rule tasks were retired: a line a reason, a column an epoch."""
    trained = [row for row in rows if row.epoch]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("")
    for row in trained:
        table.add_column(f"epoch {row.epoch}", justify="right")
    for word, counts in (
        ("rejected", [row.variants_rejected for row in trained]),
        ("retired", [row.retired for row in trained]),
    ):
        for reason in sorted(set().union(*counts)):
            cells = [Text(str(found.get(reason, 0))) for found in counts]
            table.add_row(Text(f"{word}: {printable(reason)}"), *cells)
    return table


def status_line(status: Status) -> Text:
    """The progress of the run."""
    moment = status.moment
    parts = [f"epoch {moment.epoch}, step {moment.step}", f"{moment.in_flight} of {moment.groups} groups in flight"]
    if status.restarts:
        parts.append(f"{status.restarts} worker restarts")
    if status.phase:
        parts.append(printable(status.phase))
    return Text("; ".join(parts), style="dim")


def uplift_line(uplift: Uplift) -> str:
    """An uplift with its standard error, in one line."""
    errors = "" if uplift.errors is None else f", {uplift.errors:+.1f} standard errors"
    return (
        f"{uplift.name}: {uplift.first:.4f} in epoch {uplift.first_epoch}, "
        f"{uplift.last:.4f} in epoch {uplift.last_epoch}, "
        f"uplift {uplift.rise:+.4f} ± {uplift.error:.4f}{errors} ({uplift.tasks} tasks, paired)"
    )


def print_summary(summary: RunSummary, console: Console | None = None) -> None:
    """The last tables and the uplifts, on stdout."""
    out = console or _console(stderr=False)
    out.print(epoch_table(summary.epochs), "", sep="\n")
    reasons = reason_table(summary.epochs)
    if reasons.row_count:
        out.print(reasons, "", sep="\n")
    for uplift in summary.rises:
        out.print(Text(uplift_line(uplift)))
    for alarm in summary.alarms:
        out.print(Text(f"alarm: {printable(alarm, 200)}"))


class LiveTable:
    """A context in which `update` redraws the table. Where stderr is no terminal, it writes a line per step and
    epoch instead."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or _console(stderr=True)
        self._live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        self._step = 0
        self._told: set[int] = set()

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def update(self, rows: Sequence[EpochSummary], status: Status) -> None:
        """Shows the rows and the status."""
        if self._live:
            self._live.update(live_view(rows, status), refresh=True)
            return
        for row in rows:
            closed = row.seconds is not None if row.epoch else len(rows) > 1
            if closed and row.epoch not in self._told:
                self._told.add(row.epoch)
                self.console.print(Text(_sentence(row)), soft_wrap=True)
        if status.moment.step > self._step:
            self._step = status.moment.step
            self.console.print(status_line(status), soft_wrap=True)


def live_view(rows: Sequence[EpochSummary], status: Status) -> RenderableType:
    """What the live table shows."""
    return Group(epoch_table(rows), status_line(status))


def printable(text: str, limit: int = MAX_WORD) -> str:
    """The text without what a terminal would obey, at most `limit` characters: reasons may come from a model."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _cells(row: EpochSummary) -> list[str]:
    return [
        str(row.epoch) if row.epoch else "start",
        decimal(row.progress_pool),
        decimal(row.progress_heldout),
        "" if row.flat_share is None else f"{row.flat_share:.0%}",
        "/".join([str(row.zones.get(zone, 0)) for zone in ZONES]) if row.epoch else "",
        *(
            [str(row.seeds), str(row.variants_verified), str(sum(row.variants_rejected.values()))]
            if row.epoch
            else EMPTY
        ),
        *([str(row.injected), str(sum(row.retired.values()))] if row.epoch else EMPTY[:2]),
        f"{row.originals}+{row.variants}" if row.pool_digest else "",
        row.pool_digest[:12],
        "" if row.seconds is None else f"{row.seconds:.0f}",
    ]


def _sentence(row: EpochSummary) -> str:
    """A row on one line, without a table around it."""
    named = [f"{name} {cell}" for name, cell in zip(COLUMNS, _cells(row), strict=True) if cell]
    counts = [_counts("rejected", row.variants_rejected), _counts("retired", row.retired)]
    return "; ".join([*named, *[text for text in counts if text]])


def _counts(word: str, counts: Mapping[str, int]) -> str:
    listed = ", ".join([f"{count} {printable(name)}" for name, count in counts.items()])
    return f"{word} by reason: {listed}" if listed else ""


def decimal(value: float | None) -> str:
    """Three decimals; empty where there is no figure."""
    return "" if value is None else f"{value:.3f}"


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH, soft_wrap=True)
    return console
