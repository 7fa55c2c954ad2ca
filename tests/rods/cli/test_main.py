"""What every command does: its help can be read, and a closed pipe ends it quietly."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rods.cli.main import NOBODY_READS, app
from rods.settings import load_settings

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "archives" / "windowed"


def options(command: Any) -> Iterator[Any]:
    """Every option and argument of a command and of those below it."""
    yield from command.params
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


def test_the_help_of_no_option_is_taken_for_markup() -> None:
    helps = [option.help for option in options(typer.main.get_command(app)) if getattr(option, "help", None)]
    assert len(helps) > 50
    assert [text for text in helps if "[" in text] == []


def test_the_defaults_that_help_names_are_those_of_a_run() -> None:
    told = {p.name: p.help for p in typer.main.get_command(app).commands["run"].params}  # type: ignore[attr-defined]
    settings = load_settings()
    defaults = {
        "tasks": settings.tasks,
        "policy": settings.policy,
        "broker": settings.broker,
        "prefix": settings.prefix,
        "epochs": settings.rules.epochs,
        "seed": settings.rules.seed,
        "curriculum": settings.rules.curriculum,
    }
    assert {name: f"(default: {default})" in told[name] for name, default in defaults.items()} == dict.fromkeys(
        defaults, True
    )


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("words", [("tasks", "list"), ("pool", "show", str(GOLDEN))])
def test_a_command_ends_quietly_where_nobody_reads_its_output(words: tuple[str, ...], buffered: str) -> None:
    command = [sys.executable, "-m", "rods", *words]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": buffered}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=ROOT
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == NOBODY_READS
