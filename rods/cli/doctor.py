"""``rods doctor``: what the configured parts can do, and what is degraded."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rods.cli.cluster import given


def doctor(
    settings: Annotated[Path | None, typer.Option("--settings", help="a TOML file of settings")] = None,
    broker: Annotated[str | None, typer.Option(help="embedded, kafka or HOST:PORT")] = None,
    policy: Annotated[str | None, typer.Option(help="warm-start, scripted or a model folder")] = None,
    tasks: Annotated[str | None, typer.Option(help="workbench, bfcl or a task file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines, one per check")] = False,
) -> None:
    """Probes broker, warehouse, policy and tasks. Exit code 1: something cannot work."""
    import logging

    from rods.checks import examine
    from rods.diagnosis import Condition
    from rods.settings import load_settings

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    findings = examine(load_settings(settings, given(broker=broker, policy=policy, tasks=tasks)))
    for finding in findings:
        if as_json:
            typer.echo(json.dumps({"check": finding.check, "health": finding.health, "detail": finding.detail}))
        else:
            typer.echo(f"{finding.health:<9} {finding.check:<15}{finding.detail}")
    if any(finding.health is Condition.BROKEN for finding in findings):
        raise typer.Exit(1)
