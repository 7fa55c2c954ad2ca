"""``rods learn``: the learner as a service, and the warm start of its model."""

import typer

from rods.cli import learn_warm_start
from rods.cli.services import Broker, Folder, Prefix, SettingsFile, work

app = typer.Typer(invoke_without_command=True, help="Trains the run's epochs; ends with the last one.")


@app.callback()
def learn(
    context: typer.Context,
    settings: SettingsFile = None,
    broker: Broker = None,
    prefix: Prefix = None,
    folder: Folder = None,
) -> None:
    """Trains the run's epochs; ends with the last one."""
    if context.invoked_subcommand is None:
        work("learner", settings, broker, prefix, folder)


app.command("warm-start")(learn_warm_start.warm_start)
