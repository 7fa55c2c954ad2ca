"""The page of a run's drift: one HTML file that needs nothing beside it and runs no script."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from rods.reports.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, DrawnChart, plot_known, svg_over_epochs
from rods.reports.report import template
from rods.reports.table import decimal
from streams.audit.drift.figures import DriftReport, EpochDrift
from streams.audit.drift.findings import DriftLimits, Finding

_ZONES = {"hard": RED, "boundary": ORANGE, "mastered": GREEN, "none": GREY}
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, GREY)
Draw = Callable[[Any, Sequence[EpochDrift]], None]


def drift_page(report: DriftReport, found: Sequence[Finding], limits: DriftLimits) -> str:
    """The page of a drift."""
    return template("drift.html").render(
        report=report, findings=found, limits=limits, charts=drift_charts(report), decimal=decimal
    )


def drift_charts(report: DriftReport) -> list[DrawnChart]:
    """Every chart, in the order of the page."""
    return [DrawnChart(title, note, _svg(title, draw, report.epochs)) for title, note, draw in _PLANS]


def _svg(name: str, draw: Draw, rows: Sequence[EpochDrift]) -> str:
    def whole(axes: Any) -> None:
        draw(axes, rows)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))

    return svg_over_epochs(name, whole)


def _shares(axes: Any, rows: Sequence[EpochDrift], names: Sequence[str], of: str, colours: Sequence[str]) -> None:
    epochs = [row.epoch for row in rows]
    bottom = [0.0] * len(rows)
    for number, name in enumerate(names):
        heights = [getattr(row, of).get(name, 0) / row.groups if row.groups else 0.0 for row in rows]
        axes.bar(epochs, heights, bottom=bottom, label=name[:40], color=colours[number % len(colours)], width=0.8)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    axes.set_ylim(0, 1)


def _zones(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _shares(axes, rows, list(_ZONES), "zones", list(_ZONES.values()))


def _categories(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _shares(axes, rows, sorted({name for row in rows for name in row.categories}), "categories", _COLOURS)


def _progress(axes: Any, rows: Sequence[EpochDrift]) -> None:
    """Each epoch's histogram as a column of shades."""
    for row in rows:
        most = max(row.histogram, default=0) or 1
        for number, count in enumerate(row.histogram):
            axes.bar(row.epoch, 0.1, bottom=number / 10, color=BLUE, alpha=count / most, width=0.8)
    _line(axes, rows, "progress", "mean", ORANGE)
    axes.set_ylim(0, 1)


def _distances(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _line(axes, rows, "psi", "PSI", RED)
    _line(axes, rows, "jensen_shannon", "Jensen-Shannon", BLUE)
    axes.set_ylim(bottom=0)


def _depth(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _line(axes, rows, "depth", "mean turns", PURPLE)
    axes.set_ylim(bottom=0)


def _variants(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _line(axes, rows, "variant_share", "share of groups", GREEN)
    axes.set_ylim(0, 1)


def _age(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _line(axes, rows, "variant_age", "mean age, epochs", SKY)
    axes.set_ylim(bottom=0)


def _flips(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _line(axes, rows, "flip_share", "share of revisits", RED)
    axes.set_ylim(0, 1)


def _judge(axes: Any, rows: Sequence[EpochDrift]) -> None:
    _line(axes, rows, "judge_pass_rate", "drafts passed", GREEN)
    axes.set_ylim(0, 1)


def _line(axes: Any, rows: Sequence[EpochDrift], field: str, label: str, colour: str) -> None:
    plot_known(axes, [(row.epoch, getattr(row, field)) for row in rows], label, colour)


_PLANS: tuple[tuple[str, str, Draw], ...] = (
    ("Zones", "Train groups by the zone of their task.", _zones),
    ("Categories", "Train groups by the category of their task.", _categories),
    ("Progress", "Groups by their mean share of turns passed; the darkest bin of an epoch holds most.", _progress),
    ("Distance from the reference epoch", "Of the distribution of progress.", _distances),
    ("Depth", "Turns of the tasks trained on.", _depth),
    ("Variants", "Train groups of generated tasks.", _variants),
    ("Age", "Epochs since the boundary that brought a generated task in.", _age),
    ("Flips", "Visits after which the verdict to evict or keep is not the one before.", _flips),
    ("Critique", "Drafts of variants that pass gates and judge.", _judge),
)
