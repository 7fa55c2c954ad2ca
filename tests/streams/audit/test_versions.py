"""Code that has moved on: newer schema versions and other defaults change no replay of an old log."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from schemas.catalogue import BY_KIND
from schemas.codec import decode_plain
from schemas.errors import UndecodableError
from schemas.topics import Topic
from streams.archive.read import read_archive
from tests.streams.audit.forge import GOLDEN

ROOT = Path(__file__).resolve().parents[3]
DEFAULTS = {
    'alpha_low: Threshold = Decimal("0.20")': 'alpha_low: Threshold = Decimal("0.33")',
    'alpha_high: Threshold = Decimal("0.85")': 'alpha_high: Threshold = Decimal("0.71")',
    'drift_high: Threshold = Decimal("0.95")': 'drift_high: Threshold = Decimal("0.60")',
    "window: int = Field(1,": "window: int = Field(3,",
    "patience: int = Field(1,": "patience: int = Field(4,",
    "quota: int = Field(2,": "quota: int = Field(7,",
    "p_max: int = Field(400,": "p_max: int = Field(1,",
}


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as a later one might be: every event and every record within one has a field more, and the rules have
    other defaults."""
    root = tmp_path_factory.mktemp("later")
    for package in ("schemas", "eventlog", "streams", "learner", "producers", "rods"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in ("epochs", "pool", "rollouts", "seals", "synthesis", "task", "envelope"):
        path = root / "schemas" / f"{module}.py"
        path.write_text(_grown(path.read_text()))
    rules = root / "schemas" / "rules.py"
    text = rules.read_text()
    for old, new in DEFAULTS.items():
        assert old in text, old
        text = text.replace(old, new)
    rules.write_text(text)
    python(root, "-m", "schemas.evolution")
    return root


ADDED = "    added_later: str | None = None\n"
REPLAYED = ("defaults", "disturbed", "retiring", "windowed")
REPLAY = """
import sys
from pathlib import Path
from streams.audit.load.source import ArchiveSource
from streams.audit.replay import ReplayOptions, replay
for archive in sys.argv[1:]:
    print(replay(ArchiveSource(Path(archive)), ReplayOptions(jobs=1)).agrees)
"""
NESTED = frozenset(
    {
        "Envelope",
        "EvaluatedTask",
        "ExpectedGroup",
        "PlannedGroup",
        "SealedGroup",
        "SelectedSeed",
        "Slot",
        "TaskDefinition",
        "TaskState",
        "Turn",
        "WindowGroup",
    }
)


def _grown(source: str) -> str:
    """A module whose records have a field more, after those of their own and before the envelope."""
    lines = source.splitlines(keepends=True)
    for record in reversed([node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]):
        own = [one for one in record.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
        if record.decorator_list and own:
            envelope = next((one.lineno - 1 for one in own if ast.unparse(one.target) == "envelope"), None)
            lines.insert(own[-1].end_lineno or 0 if envelope is None else envelope, ADDED)
    return "".join(lines)


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_the_later_project_has_a_second_version_of_every_record(later: Path) -> None:
    names = {path.name for path in (later / "schemas" / "avro").glob("*.avsc")}
    assert {name for name in names if name.endswith(".v1.avsc")}
    assert {re.sub(r"\.v\d+\.", ".", name) for name in names if not name.endswith(".v1.avsc")} == {
        re.sub(r"\.v\d+\.", ".", name) for name in names
    }


def _records(schema: Any) -> Iterator[tuple[str, list[str]]]:
    """Every record of a schema, with its fields."""
    if isinstance(schema, dict):
        if schema.get("type") == "record":
            yield schema["name"], [field["name"] for field in schema["fields"]]
        for inner in schema.values():
            yield from _records(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _records(inner)


def test_every_record_within_a_record_has_a_field_more_too(later: Path) -> None:
    found: dict[str, list[str]] = {}
    for path in (later / "schemas" / "avro").glob("*.avsc"):
        if not path.name.endswith(".v1.avsc"):
            found |= dict(_records(json.loads(path.read_text())))
    assert found.keys() == BY_KIND.keys() | NESTED
    assert [name for name, fields in found.items() if "added_later" not in fields] == []


def test_the_replayed_archives_hold_every_kind_of_event_in_its_first_version() -> None:
    seen = set()
    for name in REPLAYED:
        for record in (record for topic in Topic for record in read_archive(GOLDEN / name, topic)):
            with suppress(UndecodableError):
                seen.add(decode_plain(record.value or b"")[:2])
    assert seen == {(kind, 1) for kind in BY_KIND}


def test_old_logs_replay_under_newer_schemas_and_other_defaults(later: Path) -> None:
    done = python(later, "-c", REPLAY, *[str(GOLDEN / name) for name in REPLAYED])
    assert done.stdout.split() == ["True"] * len(REPLAYED), done.stdout + done.stderr


@pytest.mark.slow
def test_the_other_audits_read_an_old_log_too(later: Path) -> None:
    archive = str(GOLDEN / "disturbed")
    assert "no decision differs" in python(later, "-m", "rods", "audit", "what-if", archive).stdout
    for command in (("audit", "drift"), ("pool", "show", "--at-epoch", "2")):
        shown = python(ROOT, "-m", "rods", *command, archive, "--json").stdout
        assert python(later, "-m", "rods", *command, archive, "--json").stdout == shown != ""
