"""``rods audit verify``: is a log complete, and every record in it a possible event? Of an archive or a cluster."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.run_log import Broker, Json, Prefix, Run, audit_errors, bar, open_log, show
from rods.errors import UserError

if TYPE_CHECKING:
    from streams.audit.verify.archive import Verification, Witness


def verify(
    run: Run = None,
    show_all: Annotated[bool, typer.Option("--all", help="every fault, not the first alone")] = False,
    heads: Annotated[
        Path | None, typer.Option("--heads", help="heads of this archive that were kept elsewhere")
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="of whoever signed the heads, those given or the archive's own")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="processes; 0: one a core")] = 0,
    broker: Broker = None,
    prefix: Prefix = "rods.",
    as_json: Json = False,
) -> None:
    """Checks chains, files, offsets, schemas and the values of every event. Exit code 1: something is wrong."""
    import os

    from streams.audit.load.source import ArchiveSource, ClusterSource
    from streams.audit.verify.archive import verify_archive
    from streams.audit.verify.cluster import verify_cluster

    if broker and (heads or public_key):
        raise UserError("heads are those of an archive; name its folder instead of --broker")
    source = open_log(run, broker, prefix)
    with audit_errors(), bar("verifying", "records" if broker else "bytes") as progress:
        if isinstance(source, ClusterSource):
            result = verify_cluster(source, progress)
        else:
            assert isinstance(source, ArchiveSource)
            result = verify_archive(source.folder, jobs or os.cpu_count() or 1, _witness(heads, public_key), progress)
    show(document(result), lines(result, show_all), as_json, good=result.sound)


def document(result: "Verification") -> dict[str, Any]:
    """The result as JSON holds it; keys are stable."""
    return {
        "run_id": result.run,
        "sound": result.sound,
        "partitions": result.partitions,
        "segments": result.segments,
        "records": result.records,
        "attempts": result.attempts,
        "bytes": result.bytes,
        "repeated": result.repeated,
        "refused": result.refused,
        "trajectories": asdict(result.trajectories),
        "cuts": result.cuts,
        "set_aside": [asdict(back) for back in result.set_aside],
        "heads": result.heads,
        "chained": result.chained,
        "faults": [fault.as_json() for fault in result.faults],
    }


def lines(result: "Verification", show_all: bool) -> Iterator[str]:
    """The result for a person."""
    where = f"{result.segments} segments of {result.partitions} partitions, {result.cuts} cuts"
    yield (
        f"run {result.run or 'unknown'}: {result.records} records of {result.attempts} attempts "
        f"in {where if result.chained else f'{result.partitions} partitions of a live log'}"
    )
    if result.repeated:
        yield f"{result.repeated} events were delivered again, which changes nothing"
    if result.refused:
        yield f"{result.refused} records were refused when they came, as the dead letters tell"
    if result.trajectories.present:
        yield f"{result.trajectories.present} of {result.trajectories.named} trajectories are there, each compared"
    for back in result.set_aside:
        yield f"{back.folder}: a return to cut {back.cut} set aside {back.records} records in {back.segments} segments"
    if result.sound:
        checked = "chains, files, offsets" if result.chained else "offsets"
        yield f"no fault: {checked}, schemas and values hold"
        yield _vouching(result.heads) if result.chained else "a live log has no chain; an archive of it has"
        return
    count = len(result.faults)
    yield "1 fault:" if count == 1 else f"{count} faults:" if show_all else f"{count} faults; the first:"
    for fault in result.faults if show_all else result.faults[:1]:
        yield f"  {fault.line()}"


def _vouching(heads: str) -> str:
    return {
        "none": "no heads were given: an archive that was sealed anew as a whole would look the same",
        "given": "the archive is the one that the given heads were taken of",
        "signed": "the heads are signed with the given key, and the archive is theirs",
    }[heads]


def _witness(heads: Path | None, public_key: Path | None) -> "Witness":
    from streams.archive.heads import parse_heads, read_public_key
    from streams.audit.verify.archive import Witness

    return Witness(parse_heads(heads) if heads else None, read_public_key(public_key) if public_key else None)
