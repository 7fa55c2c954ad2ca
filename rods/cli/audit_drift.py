"""``rods audit drift``: how a curriculum moved, epoch by epoch, and what of it is worth a look."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.run_log import Broker, Json, Prefix, Run, ToEpoch, audit_errors, columns_folder, open_log, show

if TYPE_CHECKING:
    from streams.audit.drift.figures import DriftReport, EpochDrift
    from streams.audit.drift.findings import Finding


def drift(
    run: Run = None,
    to_epoch: ToEpoch = None,
    reference: Annotated[
        int | None, typer.Option("--reference", help="the epoch to compare with (default: 1st)")
    ] = None,
    limit: Annotated[list[str] | None, typer.Option("--limit", help="as in psi=0.1; may be repeated")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="write one page that needs nothing beside it")] = None,
    columns: Annotated[
        Path | None, typer.Option("--columns", help="where side files are kept (default: in the run folder)")
    ] = None,
    broker: Broker = None,
    prefix: Prefix = "rods.",
    as_json: Json = False,
) -> None:
    """Zones, categories, depth, variants, flips, critique and distances by epoch. Exit code 1: a limit is passed."""
    from streams.audit.drift.figures import drift as measure
    from streams.audit.drift.findings import DriftLimits, findings
    from streams.audit.load.columns import ColumnStore
    from streams.audit.load.epochs import run_facts

    with audit_errors():
        limits = DriftLimits()
        for assignment in limit or ():
            limits = limits.changed(assignment)
        source = open_log(run, broker, prefix)
        store = ColumnStore(source, columns or columns_folder(run))
        report = measure(store, run_facts(source, to_epoch), reference, to_epoch)
        found = findings(report, limits)
    if html is not None:
        from rods.reports.drift_page import drift_page
        from rods.reports.report import write_whole

        write_whole(html, drift_page(report, found, limits))
    show(document(report, found), lines(report, found), as_json, good=not found)


def document(report: "DriftReport", found: "Sequence[Finding]") -> dict[str, Any]:
    """The report as JSON holds it; keys are stable."""
    return {
        "run_id": report.run_id,
        "reference": report.reference,
        "epochs": [row.document() for row in report.epochs],
        "findings": [finding._asdict() for finding in found],
    }


_HEAD = (
    "epoch  groups  mastered  boundary  hard  none  progress  depth  variants    age  flips  evicted (flipped)  "
    "critique    PSI     JS"
)


def lines(report: "DriftReport", found: "Sequence[Finding]") -> Iterator[str]:
    """The report for a person."""
    yield f"run {report.run_id}, distances against epoch {report.reference}"
    yield _HEAD
    for row in report.epochs:
        yield _row(row)
    for row in report.epochs:
        mix = ", ".join(f"{name} {count / row.groups:.2f}" for name, count in row.categories.items())
        yield f"epoch {row.epoch} categories: {mix}"
    for finding in found:
        yield f"finding, epoch {finding.epoch}: {finding.text} is {finding.value:.3f}; the limit is {finding.bound:g}"
    if not found:
        yield "no finding: every figure is within its limit"


def _row(row: "EpochDrift") -> str:
    zones = row.zones
    evicted = f"{row.evictions} ({row.evictions_flipped})"
    return (
        f"{row.epoch:>5}  {row.groups:>6}  {zones['mastered']:>8}  {zones['boundary']:>8}  {zones['hard']:>4}  "
        f"{zones['none']:>4}  {_figure(row.progress):>8}  {_figure(row.depth):>5}  {_figure(row.variant_share):>8}  "
        f"{_figure(row.variant_age):>5}  {_figure(row.flip_share):>5}  {evicted:>17}  "
        f"{_figure(row.judge_pass_rate):>8}  {_figure(row.psi):>5}  {_figure(row.jensen_shannon):>5}"
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
