"""docs/audit.md is a worked audit: every command in it is run, in the page's order, and prints what the page says.

A line ``...`` stands for any lines. ``run`` and ``control`` are the logs in examples/audit; ``forged`` is the first
with a verdict edited in a seal, ``resealed`` with a turn edited in a result, and both are sealed again from there on.
"""

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rods.cli.main import app
from schemas.rollouts import RolloutFinished
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from tests.streams.audit.forge import forge, places

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "audit"
PAGE = ROOT / "docs" / "audit.md"
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
STEP = 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folders that the page audits, and what its commands write."""
    folder = tmp_path_factory.mktemp("audit")
    for name in ("run", "control"):
        shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("columns"))
    archive = folder / "run" / "archive"
    place, _ = places(archive, Topic.SEALS, lambda e: isinstance(e, PartitionSealed) and e.step == STEP)[0]
    forge(archive, folder / "forged", place, mastered)
    place, _ = places(
        archive, Topic.ROLLOUTS, lambda e: isinstance(e, RolloutFinished) and e.slots[0].turns_passed > 0
    )[0]
    forge(archive, folder / "resealed", place, failed_late)
    yield folder
    shutil.rmtree(folder)


def mastered(seal: Any) -> Any:
    """A seal that calls its first task mastered."""
    first = replace(seal.groups[0], zone="mastered", boundary=False)
    return replace(seal, groups=(first, *seal.groups[1:]))


def failed_late(result: Any) -> Any:
    """A result whose first attempt failed the last turn that it passed."""
    first = result.slots[0]
    passed = first.turns_passed - 1
    assert passed >= 0
    changed = replace(first, turns_passed=passed, outcomes=(True,) * passed + (False,))
    return replace(result, slots=(changed, *result.slots[1:]))


def printed(command: str) -> str:
    """What a command prints on both streams, unless it goes to a file."""
    words = shlex.split(command)
    assert words[0] == "rods"
    words, target = (words[:-2], words[-1]) if words[-2] == ">" else (words, None)
    output = CliRunner().invoke(app, words[1:]).output
    if target is None:
        return output
    Path(target).write_text(output)
    return ""


def matches(expected: str, found: str) -> bool:
    """Whether output is the expected one, where a line of three dots stands for any lines, and for none."""
    lines = expected.rstrip("\n").split("\n") if expected else []
    parts = ["(?s:(?:.*\n)?)" if line == "..." else re.escape(line) + "\n" for line in lines]
    return re.fullmatch("".join(parts), found.rstrip("\n") + "\n" if found else "") is not None


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[0][2:60])
def test_a_command_of_the_page_prints_what_the_page_says(
    block: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert commands
    for command, expected in commands:
        found = printed(command)
        assert matches(expected, found), f"$ {command}\n{found}"


def test_the_page_has_a_worked_example_of_every_command() -> None:
    commands = " ".join(BLOCKS)
    verbs = ("audit verify", "audit replay", "audit drift", "audit what-if", "audit diff", "trace", "pool show")
    for verb in (*verbs, "pool export", "archive keygen", "archive heads"):
        assert f"$ rods {verb}" in commands, verb
