"""``rods trace``: one task's history, from the original it descends from to its variants and its retirement."""

from pathlib import Path
from typing import Annotated

import typer

from rods.cli.run_log import Broker, Json, Prefix, audit_errors, open_log, show


def trace(
    run: Annotated[str, typer.Argument(metavar="RUN", help="a run or archive folder; with --broker: the task")],
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="the task's id")] = None,
    broker: Broker = None,
    prefix: Prefix = "rods.",
    as_json: Json = False,
) -> None:
    """Shows the lineage tree of a task: attempts, gates, measurements with their rollouts, decisions, variants."""
    from rods.errors import UserError
    from streams.audit.trace import history_lines, lineage

    wanted = task or (run if broker else None)
    if wanted is None:
        raise UserError("name the task after the run, as `rods pool show` lists it")
    with audit_errors():
        found = lineage(open_log(None if broker else Path(run), broker, prefix), wanted)
    document = {"task": found.wanted, "tasks": [history.document() for _, history in found.tasks()]}
    show(document, history_lines(found), as_json)
