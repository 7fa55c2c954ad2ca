"""What the commands about a cluster have in common: whose broker, which prefix, and how to reach it."""

from pathlib import Path
from typing import Annotated, Any

import typer

SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="a TOML file of settings, or a run's settings.json")
]
Broker = Annotated[str | None, typer.Option(help="HOST:PORT, or several with commas")]
Prefix = Annotated[str | None, typer.Option(help="prefix of topics and groups (default: rods.)")]


def given(**flags: Any) -> dict[str, Any]:
    """The flags that were given."""
    return {name: value for name, value in flags.items() if value is not None}


def cluster_settings(file: Path | None, **flags: Any) -> Any:
    """The settings under a file and the flags that were given. Raises UserError where they name no broker to reach."""
    from rods.errors import UserError
    from rods.settings import Settings, load_settings, read_resolved

    chosen = given(**flags)
    if file is not None and file.suffix == ".json":
        resolved = read_resolved(file)
        settings = Settings.model_validate({name: getattr(resolved, name) for name in Settings.model_fields} | chosen)
    else:
        settings = load_settings(file, chosen)
    if settings.starts_broker:
        raise UserError("this needs a broker that runs: give --broker HOST:PORT, or --settings RUN/settings.json")
    return settings
