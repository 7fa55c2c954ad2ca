"""``rods pool``: the pool of a run at an epoch, from its log alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rods.cli.run_log import Broker, Json, Prefix, Run, audit_errors, open_log, say

if TYPE_CHECKING:
    from streams.pool.replay import ReplayedPool

app = typer.Typer(no_args_is_help=True, help="The pool of a run at an epoch.")

AtEpoch = Annotated[int | None, typer.Option("--at-epoch", min=0, help="after this epoch (default: last)")]


@app.command("show")
def show(
    run: Run = None,
    at_epoch: AtEpoch = None,
    broker: Broker = None,
    prefix: Prefix = "rods.",
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines: one header, then one line per task")] = False,
) -> None:
    """Shows members, queue and digest, recomputed from the log. Exit code 1: the recorded digest differs."""
    found = _pool(run, at_epoch, broker, prefix)
    lines = [json.dumps(found.header()), *(json.dumps(row) for row in found.rows())] if as_json else found.lines()
    for line in lines:
        say(line)
    if not found.agrees:
        raise typer.Exit(1)


@app.command("export")
def export(
    run: Run = None,
    at_epoch: AtEpoch = None,
    to: Annotated[Path, typer.Option("--to", help="the folder that takes the files")] = Path(),
    broker: Broker = None,
    prefix: Prefix = "rods.",
    as_json: Json = False,
) -> None:
    """Writes the pool as JSON lines and Parquet, for other trainers. Exit code 1: the recorded digest differs."""
    from rods.errors import UserError
    from streams.pool.materialise import write_pool

    found = _pool(run, at_epoch, broker, prefix)
    try:
        lines = write_pool(to, found.recorded, found.state)
    except OSError as error:
        raise UserError(f"{to} cannot be written to: {error.strerror}") from error
    document = {**found.header(), "jsonl": str(lines), "parquet": str(lines.with_suffix(".parquet"))}
    typer.echo(json.dumps(document) if as_json else f"{document['jsonl']}\n{document['parquet']}")
    if not found.agrees:
        raise typer.Exit(1)


def _pool(run: Path | None, epoch: int | None, broker: str | None, prefix: str) -> "ReplayedPool":
    from streams.audit.recompute.pool_epoch import pool_of

    with audit_errors():
        return pool_of(open_log(run, broker, prefix), epoch)
