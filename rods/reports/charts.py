"""Charts of a run's epochs as SVG text. Equal rows give equal bytes."""

import io
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rods.reports.summary import EpochSummary

# Wong's palette: distinguished by readers with any colour vision.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
    "#999999",
)
STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
}
Draw = Callable[[Any, Sequence[EpochSummary]], None]


class DrawnChart(NamedTuple):
    """A drawn chart. svg: an element for an HTML page."""

    title: str
    note: str
    svg: str


class _Drawing(NamedTuple):
    """from_start: whether epoch 0, the state before training, has a place in the chart."""

    title: str
    note: str
    draw: Draw
    from_start: bool = False


def charts(rows: Sequence[EpochSummary]) -> list[DrawnChart]:
    """Every chart, in the order of the page."""
    return [_chart(name, plan, rows) for name, plan in _PLANS.items()]


def _chart(name: str, plan: _Drawing, rows: Sequence[EpochSummary]) -> DrawnChart:
    shown = [row for row in rows if row.epoch or plan.from_start]
    return DrawnChart(plan.title, plan.note, _svg(name, plan.draw, shown))


def _svg(name: str, draw: Draw, rows: Sequence[EpochSummary]) -> str:
    def whole(axes: Any) -> None:
        draw(axes, rows)
        axes.set_xticks([row.epoch for row in rows])
        if rows:
            axes.set_xlim(rows[0].epoch - 0.5, rows[-1].epoch + 0.5)
        if axes.get_ylim()[1] > 1:
            axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        if not axes.lines and not any(bar.get_height() for bar in axes.patches):
            axes.set_yticks([])
            axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", color=GREY)

    return svg_over_epochs(name, whole)


def svg_over_epochs(name: str, draw: Callable[[Any], None]) -> str:
    """A chart over epochs, with its legend, as an SVG element. name: salts the ids in it."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(5.2, 2.9), layout="constrained")
        axes: Any = figure.add_subplot()
        draw(axes)
        axes.set_xlabel("epoch")
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _progress(axes: Any, rows: Sequence[EpochSummary]) -> None:
    plot_known(axes, [(row.epoch, row.progress_pool) for row in rows], "pool, while training", BLUE)
    plot_known(axes, [(row.epoch, row.progress_heldout) for row in rows], "held out, after the epoch", ORANGE)
    axes.set_ylim(0, 1)


def _flat(axes: Any, rows: Sequence[EpochSummary]) -> None:
    plot_known(axes, [(row.epoch, row.flat_share) for row in rows], "share of groups", RED)
    axes.set_ylim(0, 1)


def _zones(axes: Any, rows: Sequence[EpochSummary]) -> None:
    colours = {"hard": RED, "boundary": ORANGE, "mastered": GREEN, "none": GREY}
    _stack(axes, rows, {zone: [row.zones.get(zone, 0) for row in rows] for zone in colours}, list(colours.values()))


def _synthesis(axes: Any, rows: Sequence[EpochSummary]) -> None:
    plot_known(axes, [(row.epoch, row.seeds) for row in rows], "seeds", BLUE)
    plot_known(axes, [(row.epoch, row.variants_verified) for row in rows], "variants verified", GREEN)
    plot_known(axes, [(row.epoch, row.variants_trained) for row in rows], "variants trained on", PURPLE)
    axes.set_ylim(bottom=0)


def _rejected(axes: Any, rows: Sequence[EpochSummary]) -> None:
    _stack(axes, rows, _by_reason(rows, lambda row: row.variants_rejected))


def _turnover(axes: Any, rows: Sequence[EpochSummary]) -> None:
    retired = _by_reason(rows, lambda row: row.retired)
    below = {f"retired: {rule}": [-count for count in counts] for rule, counts in retired.items()}
    _stack(axes, rows, {"injected": [row.injected for row in rows]}, [GREEN])
    _stack(axes, rows, below, [RED, ORANGE, PURPLE, SKY, GREY])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")


def _pool(axes: Any, rows: Sequence[EpochSummary]) -> None:
    held = [row for row in rows if row.pool_digest]
    layers = {"originals": [row.originals for row in held], "variants": [row.variants for row in held]}
    _stack(axes, held, layers, [BLUE, SKY])


def _trained(axes: Any, rows: Sequence[EpochSummary]) -> None:
    _stack(axes, rows, {"groups trained on": [row.groups_trained for row in rows]}, [BLUE])


def plot_known(axes: Any, points: Sequence[tuple[int, float | None]], label: str, colour: str) -> None:
    known = [(epoch, value) for epoch, value in points if value is not None]
    axes.plot([epoch for epoch, _ in known], [value for _, value in known], "o-", label=label, color=colour)


def _stack(
    axes: Any, rows: Sequence[EpochSummary], layers: Mapping[str, Sequence[int]], colours: Sequence[str] = ()
) -> None:
    bottom = [0] * len(rows)
    chosen = cycle(colours or (RED, ORANGE, PURPLE, SKY, BLUE, GREEN, GREY))
    for (label, heights), colour in zip(layers.items(), chosen, strict=False):
        axes.bar([row.epoch for row in rows], heights, bottom=bottom, label=label, color=colour, width=0.6)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]


def _by_reason(
    rows: Sequence[EpochSummary], counts: Callable[[EpochSummary], Mapping[str, int]], most: int = 7
) -> dict[str, list[int]]:
    """Counts by reason, epoch by epoch: the most frequent reasons, and the others together."""
    totals: dict[str, int] = {}
    for row in rows:
        for reason, count in counts(row).items():
            totals[reason] = totals.get(reason, 0) + count
    ranked = sorted(totals, key=lambda reason: (-totals[reason], reason))
    shown = {reason[:40]: [counts(row).get(reason, 0) for row in rows] for reason in ranked[:most]}
    if ranked[most:]:
        shown["others"] = [sum([counts(row).get(reason, 0) for reason in ranked[most:]]) for row in rows]
    return shown


_PLANS: dict[str, _Drawing] = {
    "progress": _Drawing("Progress", "Mean share of turns passed; 1 is every turn of every task.", _progress, True),
    "flat": _Drawing("Groups without variance", "They give no gradient: the depletion that RODS works against.", _flat),
    "zones": _Drawing("Zones", "Train groups by the zone of their task.", _zones),
    "synthesis": _Drawing("Synthesis", "Boundary seeds selected, and what became of them.", _synthesis),
    "rejected": _Drawing("Variants rejected", "Attempts at a variant that failed a gate, by reason.", _rejected),
    "turnover": _Drawing("Turnover", "Tasks injected (above) and retired by rule (below) at the boundary.", _turnover),
    "pool": _Drawing("Pool", "Members after the boundary of the epoch.", _pool, True),
    "trained": _Drawing("Training", "Groups with a gradient, as the learner trained on them.", _trained),
}
