"""``rods archive``: copies, heads and keys of an archive, and the way back into a broker."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rods.cli.run_log import Json, archive_folder, audit_errors, bar
from rods.errors import UserError

if TYPE_CHECKING:
    from streams.archive.cut import Cut

Run = Annotated[Path, typer.Argument(metavar="RUN", help="a run folder, or an archive folder")]


def mount(app: typer.Typer) -> None:
    """Adds the verbs beside `work`."""
    app.command("restore")(restore)
    app.command("copy")(copy)
    app.command("heads")(heads)
    app.command("keygen")(keygen)


def restore(
    run: Run,
    broker: Annotated[str, typer.Option("--broker", help="HOST:PORT of the broker to fill")],
    prefix: Annotated[str, typer.Option("--prefix", help="prefix of the topics there")] = "rods.",
    cut: Annotated[int | None, typer.Option("--cut", help="a cut's number; 0: the newest")] = None,
    fill_gaps: Annotated[
        bool, typer.Option("--fill-gaps", help="put fillers where the archive lacks the log's beginning")
    ] = False,
    as_json: Json = False,
) -> None:
    """Writes an archive into empty topics, with the same offsets and the original times."""
    import asyncio

    from rods.brokers.connection import connection_of, try_connection
    from rods.brokers.restored_topics import create_restored_topics
    from rods.settings import load_settings
    from streams.archive.restore import RestoreSettings, archived_partition_count, plans
    from streams.archive.restore import restore as write_back

    with audit_errors():
        archive = archive_folder(run)
        connection = connection_of(load_settings(None, {"broker": broker, "prefix": prefix}))
        settings = RestoreSettings(connection, prefix, archive, _cut(archive, cut), fill_gaps)
        partitions = archived_partition_count(archive)
        plans(settings)
        try_connection(connection)
        asyncio.run(create_restored_topics(connection, prefix, partitions))
        with bar("restoring", "records") as progress:
            records = asyncio.run(write_back(settings, progress))
    document = {"records": records, "partitions": partitions, "cut": settings.cut.number if settings.cut else None}
    typer.echo(json.dumps(document) if as_json else f"restored {records} records to {broker}, topics {prefix}*")


def copy(
    source: Annotated[str, typer.Argument(metavar="SRC", help="a run or archive folder, or a URL that fsspec knows")],
    target: Annotated[str, typer.Argument(metavar="DST", help="an archive folder, or a URL that fsspec knows")],
    as_json: Json = False,
) -> None:
    """Copies an archive, every segment checked; again, to go on where a copy ended or to add what has come since."""
    from dataclasses import asdict

    from streams.archive.copy import Store, copy_archive

    with audit_errors():
        path = Path(source)
        origin = Store.at(str(archive_folder(path)) if path.is_dir() else source)
        with bar("copying", "bytes") as progress:
            copied = copy_archive(origin, Store.at(target), lambda done: progress(done, 0))
    text = f"copied {copied.segments} segments of {copied.bytes} bytes; {copied.present} were there already"
    typer.echo(json.dumps(asdict(copied)) if as_json else text)


def heads(
    run: Run,
    key: Annotated[Path | None, typer.Option("--key", help="sign with it, and keep them in the archive too")] = None,
) -> None:
    """Prints the heads of the chains as JSON, to be kept where nobody who can write to the archive can."""
    from streams.archive.heads import HEADS, read_private_key, sign, take_heads, write_heads

    with audit_errors():
        archive = archive_folder(run)
        taken = take_heads(archive, _run_id(archive))
        if key is not None:
            taken = sign(taken, read_private_key(key))
            write_heads(taken, archive / HEADS)
    typer.echo(json.dumps(taken.as_json(), indent=1))


def keygen(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="of the private key; the public one is FILE.pub")],
) -> None:
    """Writes a new Ed25519 key pair. The private key signs heads; the public one shows who signed them."""
    from streams.archive.heads import generate_key

    with audit_errors():
        public = generate_key(file)
    typer.echo(f"private key {file}, public key {public}")


def _run_id(archive: Path) -> str:
    """The run that an archive's log names. Raises UserError where it does not."""
    from streams.audit.verify.archive import run_of

    run, _ = run_of(archive)
    if run is None:
        raise UserError(f"the archive at {archive} does not say which run it is of")
    return run


def _cut(archive: Path, number: int | None) -> "Cut | None":
    from streams.archive.cut import read_cuts

    if number is None:
        return None
    cuts = read_cuts(archive)
    if not cuts or not 0 <= number <= len(cuts):
        raise UserError(f"the archive at {archive} has {len(cuts)} cuts, and none with the number {number}")
    return cuts[number - 1]
