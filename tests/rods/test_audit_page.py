"""docs/audit.md is a worked audit: every command in it is run, and prints what the page says.

A line ``...`` stands for any lines. ``run`` is a golden archive of a run, ``other`` one of another run, and ``forged``
the first with a verdict edited in a seal and everything behind it sealed again.
"""

import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rods.cli.main import app
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from tests.streams.audit.forge import GOLDEN, forge, places

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL) if PAGE.exists() else []


def worked(folder: Path) -> None:
    """The folders that the page audits."""
    shutil.copytree(GOLDEN / "windowed", folder / "run")
    shutil.copytree(GOLDEN / "retiring", folder / "other")
    place, _ = places(GOLDEN / "windowed", Topic.SEALS, lambda e: isinstance(e, PartitionSealed) and e.step == 3)[0]
    forge(GOLDEN / "windowed", folder / "forged", place, mastered)


def mastered(seal: Any) -> Any:
    """A seal that calls its first task mastered."""
    first = replace(seal.groups[0], zone="mastered", boundary=False)
    return replace(seal, groups=(first, *seal.groups[1:]))


def printed(command: str) -> str:
    """What a command prints on both streams."""
    words = shlex.split(command)
    assert words[0] == "rods"
    return CliRunner().invoke(app, words[1:]).output


def matches(expected: str, found: str) -> bool:
    """Whether output is the expected one, where a line of three dots stands for any lines."""
    parts = ["(?s:.*)" if line == "..." else re.escape(line) for line in expected.rstrip("\n").split("\n")]
    return re.fullmatch("\n".join(parts), found.rstrip("\n")) is not None


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[0][2:60])
def test_a_command_of_the_page_prints_what_the_page_says(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        found = printed(command)
        assert matches(expected, found), f"$ {command}\n{found}"


def test_the_page_has_a_worked_example_of_every_command() -> None:
    commands = " ".join(BLOCKS)
    for verb in ("audit replay", "audit drift", "audit what-if", "audit diff", "trace", "pool show", "pool export"):
        assert f"$ rods {verb}" in commands, verb
