"""``rods pool``: the pool of a run at an epoch, from its archive alone."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rods.errors import UserError

app = typer.Typer(no_args_is_help=True, help="The pool of a run at an epoch.")


@app.callback()
def _pool() -> None:
    """The pool of a run at an epoch."""


@app.command("show")
def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run folder")],
    at_epoch: Annotated[int | None, typer.Option("--at-epoch", help="after this epoch [default: last]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines: one header, then one line per task")] = False,
) -> None:
    """Shows members, queue and digest, recomputed by folding the archive. Exit code 1: the recorded digest differs."""
    from rods.run_folder import RunFolder
    from streams.archive.errors import ArchiveError
    from streams.pool.replay import replay_pools

    folder = RunFolder(run)
    folder.check_format()
    chosen = None
    try:
        for replayed in replay_pools(folder.archive):
            if at_epoch is None or replayed.epoch == at_epoch:
                chosen = replayed
    except ArchiveError as error:
        raise UserError(str(error)) from error
    if chosen is None:
        which = "no pool" if at_epoch is None else f"no pool of epoch {at_epoch}"
        raise UserError(f"the archive of {run} holds {which}")
    lines = [json.dumps(chosen.header()), *(json.dumps(row) for row in chosen.rows())] if as_json else chosen.lines()
    for line in lines:
        typer.echo(line)
    if not chosen.agrees:
        raise typer.Exit(1)
