"""The command line: ``rods NOUN VERB``. Imports beyond the standard library wait until the command is known."""

import importlib.metadata
import os
import select
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rods.cli import archive, audit, dead_letters, doctor, learn, pool, run, services, tasks, topics, trace
from rods.errors import UserError

USER_ERROR = 2
FOUND_WRONG = 1
NOBODY_READS = 141
"""The exit code that a shell gives a command that was ended by a closed pipe (128 and the number of SIGPIPE)."""


class Commands(TyperGroup):
    """Ends quietly where whoever read the output, `head` for one, has gone."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command. Raises Exit where nobody reads on."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            if not _nobody_reads():
                raise
            raise typer.Exit(NOBODY_READS) from error
        return result


def _nobody_reads() -> bool:
    """Whether stdout is what was closed, rather than some socket. What waits to be written is then thrown away."""
    out = select.poll()
    out.register(sys.stdout.fileno(), select.POLLOUT)
    closed = any(events & (select.POLLERR | select.POLLHUP) for _, events in out.poll(0))
    if closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return closed


app = typer.Typer(
    cls=Commands,
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
