"""The locks pin what the project names, exactly."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]


def pins(name: str) -> dict[str, str]:
    """Distribution name, normalised, to its version."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line) for line in lines)
    return {normal(line.partition("==")[0]): line.partition("==")[2] for line in lines}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(
    ("lock", "named"),
    [
        ("requirements.lock", PYPROJECT["project"]["dependencies"]),
        ("requirements.lock", EXTRAS["bfcl"]),
        ("requirements.lock", PYPROJECT["build-system"]["requires"]),
        ("requirements-dev.lock", EXTRAS["dev"]),
    ],
)
def test_what_the_project_names_is_pinned_to_that_version(lock: str, named: list[str]) -> None:
    pinned = pins(lock)
    asked = {normal(line.partition("==")[0]): line.partition("==")[2] for line in named}
    assert asked == {name: pinned.get(name) for name in asked}


def test_the_two_locks_never_disagree() -> None:
    assert pins("requirements.lock").keys() & pins("requirements-dev.lock").keys() == set()


def test_the_locks_and_the_unit_tests_are_tried_on_every_python_of_the_project() -> None:
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PYPROJECT["project"]["classifiers"]))
    assert PYPROJECT["project"]["requires-python"] == f">={named[0]},<3.{int(named[-1][2:]) + 1}"
    for script in (".ci/lock", ".ci/test-pythons"):
        assert f"for version in {' '.join(named)}; do" in (ROOT / script).read_text()
