"""``rods run``: the whole loop on this machine."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.cluster import given

if TYPE_CHECKING:
    from rods.run import RunOutcome
    from rods.settings import Settings

INTERRUPTED = 130


def run(
    tasks: Annotated[str | None, typer.Option(help="workbench, bfcl or a task file (default: workbench)")] = None,
    policy: Annotated[
        str | None, typer.Option(help="warm-start, scripted or a model folder (default: warm-start)")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="epochs to train (default: 5)")] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the run (default: 1)")] = None,
    broker: Annotated[str | None, typer.Option(help="embedded, kafka or HOST:PORT (default: embedded)")] = None,
    broker_port: Annotated[int | None, typer.Option(help="port of a broker started here (default: a free one)")] = None,
    prefix: Annotated[str | None, typer.Option(help="prefix of topics and groups (default: rods.)")] = None,
    folder: Annotated[Path | None, typer.Option(help="run folder (default: runs/ID)")] = None,
    streams_workers: Annotated[int | None, typer.Option(help="processes of the streams service")] = None,
    rollout_workers: Annotated[int | None, typer.Option(help="processes of the rollout service")] = None,
    synthesis_workers: Annotated[int | None, typer.Option(help="processes of the synthesis service")] = None,
    curriculum: Annotated[str | None, typer.Option(help="rods, static or random (default: rods)")] = None,
    dashboard_port: Annotated[int | None, typer.Option(help="port of the dashboard (default: a free one)")] = None,
    settings: Annotated[Path | None, typer.Option("--settings", help="a TOML file of settings")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="any setting, as in rules.measure.window=2; may be repeated")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="go on with the run in this folder, where it stopped")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on stdout at the end")] = False,
) -> None:
    """Trains a policy on a live curriculum, with every service on this machine."""
    from rods.settings import load_settings, merged, parse_assignment

    free: dict[str, Any] = {
        "broker": broker,
        "broker_port": broker_port,
        "streams_workers": streams_workers,
        "rollout_workers": rollout_workers,
        "synthesis_workers": synthesis_workers,
        "dashboard_port": dashboard_port,
    }
    fixed: dict[str, Any] = {"tasks": tasks, "policy": policy, "prefix": prefix}
    if resume is not None:
        decided = {"seed": seed, "folder": folder, "curriculum": curriculum, "settings": settings}
        _refuse_decided(fixed | decided | {"set": assignments or None})
        _finish(_resume(resume, given(**free), epochs), as_json)
        return
    identity = _run_id()
    rules = given(epochs=epochs, seed=seed, curriculum=curriculum)
    where = str(folder or Path("runs") / identity)
    flags = given(run_id=identity, folder=where, **fixed, **free, rules=rules)
    for text in assignments or ():
        flags = merged(flags, parse_assignment(text))
    _finish(_run(load_settings(settings, flags)), as_json)


def _run(settings: "Settings") -> "RunOutcome":
    from rods.reports.table import LiveTable
    from rods.run import run as run_all

    with LiveTable() as live:
        return run_all(settings, live)


def _resume(run: Path, changes: dict[str, Any], epochs: int | None) -> "RunOutcome":
    from rods.reports.table import LiveTable
    from rods.run import resume as go_on
    from rods.run_folder import RunFolder

    with LiveTable() as live:
        return go_on(RunFolder(run), changes, epochs, live)


def _refuse_decided(flags: dict[str, Any]) -> None:
    """A run keeps what decides it. Raises UserError."""
    from rods.errors import UserError

    if named := [f"--{name}" for name, value in flags.items() if value is not None]:
        raise UserError(f"{named[0]} cannot be given with --resume: a run goes on with what it was started with")


def _finish(outcome: "RunOutcome", as_json: bool) -> None:
    """Prints the outcome; raises typer.Exit where the run did not finish."""
    from rods.run import Ending

    if as_json:
        result = {"ending": outcome.ending, "folder": str(outcome.folder.path), "restarts": outcome.restarts}
        result |= outcome.summary.document()
        typer.echo(json.dumps(result))
    else:
        _print(outcome)
    if outcome.ending is Ending.FAILED:
        print(f"rods: {outcome.reason}\n{outcome.last_words}", file=sys.stderr)
        raise typer.Exit(1)
    if outcome.ending is Ending.INTERRUPTED:
        raise typer.Exit(INTERRUPTED)


def _print(outcome: "RunOutcome") -> None:
    from rods.reports.table import print_summary

    print_summary(outcome.summary)
    typer.echo(f"{outcome.ending}: {outcome.folder.path}, report {outcome.folder.report}")


def _run_id() -> str:
    import datetime
    import secrets

    now = datetime.datetime.now(datetime.UTC)
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
