"""The run on a terminal: a table that lives on stderr while it runs, and the last one on stdout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rods.rise import Rise
from rods.summary import EpochSummary, Moment, RunSummary

PLAIN_WIDTH = 160
MAX_WORD = 48
COLUMNS = (
    "epoch",
    "pool progress",
    "held-out",
    "flat",
    "mastered",
    "boundary",
    "hard",
    "none",
    "seeds",
    "verified",
    "rejected",
    "injected",
    "retired",
    "pool",
    "digest",
    "seconds",
)


@dataclass(frozen=True, slots=True)
class Status:
    """The line under the table. restarts: of worker processes. phase: what the run waits for, in a few words."""

    moment: Moment
    restarts: int = 0
    phase: str = ""


def epoch_table(rows: Sequence[EpochSummary]) -> Table:
    """One line an epoch. Counts by reason stand one below the other."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in {"rejected", "retired", "digest"} else "right")
    for row in rows:
        table.add_row(*[Text(cell) for cell in _cells(row)])
    return table


def status_line(status: Status) -> Text:
    """Where the run stands now."""
    moment = status.moment
    parts = [f"epoch {moment.epoch}, step {moment.step}", f"{moment.in_flight} of {moment.groups} groups in flight"]
    if status.restarts:
        parts.append(f"{status.restarts} worker restarts")
    if status.phase:
        parts.append(printable(status.phase))
    return Text("; ".join(parts), style="dim")


def rise_line(rise: Rise) -> str:
    """A rise with its standard error, in one line."""
    errors = "" if rise.errors is None else f", {rise.errors:+.1f} standard errors"
    return (
        f"{rise.name}: {rise.first:.4f} in epoch {rise.first_epoch}, {rise.last:.4f} in epoch {rise.last_epoch}, "
        f"rise {rise.rise:+.4f} ± {rise.error:.4f}{errors} ({rise.tasks} tasks, paired)"
    )


def print_summary(summary: RunSummary, console: Console | None = None) -> None:
    """The last table and the rises, on stdout."""
    out = console or _console(stderr=False)
    out.print(epoch_table(summary.epochs))
    for rise in summary.rises:
        out.print(Text(rise_line(rise)))
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
            if row.pool_digest and row.epoch not in self._told:
                self._told.add(row.epoch)
                self.console.print(Text(_sentence(row)))
        if status.moment.step > self._step:
            self._step = status.moment.step
            self.console.print(status_line(status))


def live_view(rows: Sequence[EpochSummary], status: Status) -> RenderableType:
    """What the live table shows."""
    return Group(epoch_table(rows), status_line(status))


def printable(text: str, limit: int = MAX_WORD) -> str:
    """The text without what a terminal would obey, at most `limit` characters: reasons may come from a model."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _cells(row: EpochSummary) -> list[str]:
    zones = [str(row.zones.get(zone, 0)) for zone in ("mastered", "boundary", "hard", "none")]
    return [
        str(row.epoch) if row.epoch else "start",
        _decimal(row.progress_pool),
        _decimal(row.progress_heldout),
        "" if row.flat_share is None else f"{row.flat_share:.0%}",
        *zones,
        str(row.seeds),
        str(row.variants_verified),
        _counts(row.variants_rejected),
        str(row.injected),
        _counts(row.retired),
        f"{row.pool_size} = {row.originals} + {row.variants}" if row.pool_digest else "",
        row.pool_digest[:12],
        "" if row.seconds is None else f"{row.seconds:.0f}",
    ]


def _sentence(row: EpochSummary) -> str:
    """A row on one line, without a table around it."""
    named = zip(COLUMNS, [cell.replace("\n", ", ") for cell in _cells(row)], strict=True)
    return "; ".join([f"{name} {cell}" for name, cell in named if cell and cell != "0"])


def _counts(counts: Mapping[str, int]) -> str:
    return "\n".join([f"{count} {printable(name)}" for name, count in counts.items()]) or "0"


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH, soft_wrap=True)
    return console
