"""The command line: ``rods NOUN VERB``. Imports beyond the standard library wait until the command is known."""

import importlib.metadata
import sys
from typing import Annotated

import typer

from rods.cli import archive, audit, dead_letters, doctor, learn, pool, run, services, tasks, topics, trace
from rods.errors import UserError

USER_ERROR = 2
FOUND_WRONG = 1

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="An event-sourced curriculum: reward-driven online data synthesis over Kafka topics.",
)
app.command("run")(run.run)
app.command("doctor")(doctor.doctor)
app.command("trace")(trace.trace)
app.add_typer(tasks.app, name="tasks")
app.add_typer(topics.app, name="topics")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(pool.app, name="pool")
app.add_typer(learn.app, name="learn")
app.add_typer(audit.app, name="audit")
archive.mount(services.APPS["archive"])
for noun, service in services.APPS.items():
    app.add_typer(service, name=noun)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(importlib.metadata.version("rods-stream"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")] = (
        False
    ),
) -> None:
    """Options of every command."""
    del version


def main() -> None:
    """Runs a command. A user's error is one sentence on stderr and exit code 2."""
    try:
        app()
    except UserError as error:
        print(f"rods: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
