"""Code that has moved on: newer schema versions and other defaults change no replay of an old log."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    """The project as a later one might be: every event has a field more, and the rules have other defaults."""
    root = tmp_path_factory.mktemp("later")
    for package in ("schemas", "streams", "learner", "producers", "rods"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in ("epochs", "pool", "rollouts", "seals", "synthesis"):
        path = root / "schemas" / f"{module}.py"
        text = path.read_text()
        path.write_text(
            text.replace("    envelope: Envelope = UNSTAMPED", f"{ADDED}    envelope: Envelope = UNSTAMPED")
        )
    rules = root / "schemas" / "rules.py"
    text = rules.read_text()
    for old, new in DEFAULTS.items():
        assert old in text, old
        text = text.replace(old, new)
    rules.write_text(text)
    python(root, "-m", "schemas.evolution")
    return root


ADDED = "    added_later: str | None = None\n"


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


@pytest.mark.parametrize("name", ["defaults", "windowed"])
def test_an_old_log_replays_under_newer_schemas_and_other_defaults(name: str, later: Path) -> None:
    done = python(later, "-m", "rods", "audit", "replay", str(GOLDEN / name))
    assert "no divergence" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_the_other_audits_read_an_old_log_too(later: Path) -> None:
    archive = str(GOLDEN / "windowed")
    assert "no decision differs" in python(later, "-m", "rods", "audit", "what-if", archive).stdout
    assert python(later, "-m", "rods", "pool", "show", archive, "--at-epoch", "2").returncode == 0
    drift = python(ROOT, "-m", "rods", "audit", "drift", archive, "--json").stdout
    assert python(later, "-m", "rods", "audit", "drift", archive, "--json").stdout == drift != ""
