"""``rods audit replay``: every decision of a run recomputed from its facts, and compared."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.run_log import Broker, Json, Prefix, Run, ToEpoch, audit_errors, open_log, provenance_here, show

if TYPE_CHECKING:
    from streams.audit.compare.divergence import Divergence
    from streams.audit.replay import ReplayReport


def replay(
    run: Run = None,
    to_epoch: ToEpoch = None,
    task: Annotated[str, typer.Option("--task", help="only what concerns this task")] = "",
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="processes; 0: one a core")] = 0,
    broker: Broker = None,
    prefix: Prefix = "rods.",
    as_json: Json = False,
) -> None:
    """Recomputes measurements, selections, seeds, pool decisions and digests. Exit code 1: one differs."""
    import os

    from streams.audit.replay import ReplayOptions
    from streams.audit.replay import replay as recompute

    processes = 1 if broker else jobs or os.cpu_count() or 1
    with audit_errors():
        source = open_log(run, broker, prefix)
        report = recompute(source, ReplayOptions(to_epoch, task, processes), provenance_here())
    show(document(report), lines(report), as_json, good=report.agrees)


def document(report: "ReplayReport") -> dict[str, Any]:
    """The report as JSON holds it; keys are stable."""
    first = report.first
    return {
        "run_id": report.run_id,
        "agrees": report.agrees,
        "compared": asdict(report.counts),
        "pool_digests": {str(epoch): digest for epoch, digest in report.digests.items()},
        "divergences": len(report.divergences),
        "first": asdict(first) if first else None,
        "limits": [{"name": limit.name, "detail": limit.detail} for limit in report.limits],
        "open_barriers": report.open_barriers,
    }


def lines(report: "ReplayReport") -> Iterator[str]:
    """The report for a person."""
    counts = report.counts
    yield f"run {report.run_id}: {counts.groups} groups of {counts.attempts} attempts"
    yield (
        f"recomputed {counts.measurements} measurements, {counts.seals} seals, {counts.selections} selections, "
        f"{counts.seeds} seeds, {counts.boundaries} boundaries"
    )
    for epoch, digest in report.digests.items():
        yield f"  pool after epoch {epoch}  {digest or 'cannot be recomputed'}"
    if report.open_barriers:
        yield f"{report.open_barriers} barriers at the end of the log are not answered yet"
    if report.limits:
        yield "the run cannot be made again here for certain; its decisions are recomputed from its facts:"
    for limit in report.limits:
        yield f"  {limit.name}: {limit.detail}"
    if report.first is None:
        yield "no divergence: every recorded decision follows from the recorded facts"
    else:
        yield from _divergence_lines(report.first, len(report.divergences))


def _divergence_lines(first: "Divergence", count: int) -> Iterator[str]:
    yield f"{count} divergences; the first, in the order of cause and effect:" if count > 1 else "one divergence:"
    yield f"  epoch {first.epoch}, step {first.step}, {first.stage}: {first.what}"
    yield f"  {first.place}"
    yield f"  {first.path or 'as a whole'}"
    yield f"    recorded    {first.recorded}"
    yield f"    recomputed  {first.recomputed}"
    if first.evidence:
        yield "  evidence"
    for line in first.evidence:
        yield f"    {line}"
