"""`rods doctor`: each part is probed, and what cannot work makes the exit code 1."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from rods.cli.main import app

RUNNER = CliRunner()


def health(result: Result) -> dict[str, str]:
    """check to health, of JSON lines."""
    return {row["check"]: row["health"] for row in map(json.loads, result.stdout.splitlines())}


def test_what_a_run_here_would_use_is_shown_by_doing_it() -> None:
    result = RUNNER.invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    found = health(result)
    assert {name: found[name] for name in ("broker", "warehouse", "policy", "tasks")} == {
        "broker": "degraded",
        "warehouse": "fine",
        "policy": "fine",
        "tasks": "fine",
    }
    assert {"transactions", "read_committed", "join time", "message size", "retention"} <= set(found)
    details = {row["check"]: row["detail"] for row in map(json.loads, result.stdout.splitlines())}
    assert "keeps nothing on disk" in details["broker"] and "parameters" in details["policy"]


def test_parts_that_cannot_work_are_named_and_the_others_are_examined_all_the_same(tmp_path: Path) -> None:
    broken = {"broker": "127.0.0.1:1", "policy": str(tmp_path), "tasks": str(tmp_path / "none.jsonl")}
    result = RUNNER.invoke(app, ["doctor", *(word for name, value in broken.items() for word in (f"--{name}", value))])
    assert result.exit_code == 1
    found = {line.split()[1]: line.split()[0] for line in result.stdout.splitlines()}
    assert {name: found[name] for name in broken} == dict.fromkeys(broken, "broken") and found["warehouse"] == "fine"
