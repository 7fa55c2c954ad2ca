"""``rods NOUN work``: one service each, for a cluster or under `rods run`."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rods.cli.cluster import given
from rods.errors import UserError

SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="settings as `rods run` resolved them (JSON), or a TOML file")
]
Broker = Annotated[str | None, typer.Option(help="HOST:PORT of the Kafka broker")]
Prefix = Annotated[str | None, typer.Option(help="prefix of topics and groups")]
Folder = Annotated[Path | None, typer.Option(help="the run folder")]

BROKER_SECONDS = 60.0
"""How long a service that starts waits for its broker, which may be starting again itself."""
PACKAGES = ("learner", "producers", "rods", "schemas", "streams")
"""An error of one of these is a sentence; any other is logged with its traceback."""

_HELP: dict[str, str] = {
    "streams": "Measures rollouts and selects boundary seeds.",
    "rollouts": "Runs the groups that the learner asks for.",
    "synthesis": "Answers boundary seeds with verified variants.",
    "archive": "Archives every topic-partition of a run.",
    "warehouse": "Fills the warehouse and serves the dashboard.",
}


def work(
    service: str,
    settings: Path | None,
    broker: str | None = None,
    prefix: str | None = None,
    folder: Path | None = None,
) -> None:
    """Runs a service until a signal ends it. A known error is one line in its log and exit code 1. Raises UserError
    where no broker answers in time."""
    from rods.brokers.connection import connection_of, try_connection
    from rods.logging import configure_logging
    from rods.settings import load_settings, read_resolved
    from rods.wiring import SERVICES

    configure_logging(service)
    if settings is not None and settings.suffix == ".json":
        resolved = read_resolved(settings)
    else:
        flags = given(broker=broker, prefix=prefix, folder=str(folder) if folder else None)
        resolved = load_settings(settings, flags)
    if resolved.starts_broker:
        raise UserError(f"the {service} service needs a broker: give --broker HOST:PORT")
    try_connection(connection_of(resolved), BROKER_SECONDS)
    try:
        SERVICES[service](resolved)
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in PACKAGES:
            raise
        logging.getLogger("rods").error("%s", error)
        raise typer.Exit(1) from None


def _app(service: str) -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help=_HELP[service])
    app.command("work")(_command(service))
    return app


def _command(service: str) -> Callable[..., None]:
    def command(
        settings: SettingsFile = None, broker: Broker = None, prefix: Prefix = None, folder: Folder = None
    ) -> None:
        work(service, settings, broker, prefix, folder)

    command.__doc__ = f"{_HELP[service]} Ends on SIGTERM."
    return command


APPS: dict[str, typer.Typer] = {service: _app(service) for service in _HELP}
