"""The sub-app `tasks`: what it prints, and how it fails."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from producers.environments.bfcl import BfclSource
from rods.cli.tasks import app
from rods.errors import UserError
from tests.task_files import write_tasks

TASKS = tuple(BfclSource().tasks("train"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def recorded(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_recorded_calls_are_judged_turn_by_turn_in_the_order_of_the_file(tmp_path: Path) -> None:
    chosen = [TASKS[3], TASKS[0], TASKS[3]]
    truths: list[list[list[str]]] = [[list(turn.ground_truth) for turn in task.turns] for task in chosen]
    truths[1][1] = ["cd(folder='nowhere')"]
    truths[2] = truths[2][:1]
    records = [{"task": task.task, "turns": turns} for task, turns in zip(chosen, truths, strict=True)]
    found = lines(run("judge", recorded(tmp_path / "r.jsonl", *records), "--source", "bfcl", "--json"))
    assert [list(row) for row in found] == [["task", "turns", "turns_passed", "turns_total", "passed"]] * 3
    assert [row["task"] for row in found] == [task.task for task in chosen]
    assert [row["turns_passed"] for row in found] == [chosen[0].turns_total, 1, 1]
    assert [row["passed"] for row in found] == [True, False, False]
    assert found[1]["turns"] == [True] + [False] * (chosen[1].turns_total - 1)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"task": "multi_turn_base_0"}',
        '{"task": "multi_turn_base_0", "turns": "ls()"}',
        '{"task": "multi_turn_base_0", "turns": [[1]]}',
        '{"task": "multi_turn_base_0", "turns": [[], [], [], [], [], [], [], [], []]}',
        '{"task": "nobody", "turns": []}',
        '{"task": [], "turns": []}',
        '{"task": "\\ud800", "turns": []}',
        "[" * 100_000,
        "9" * 5_000,
    ],
)
def test_a_broken_record_ends_with_one_sentence_and_no_verdict(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"task": "multi_turn_base_0", "turns": []}\n' + line + "\n")
    result = run("judge", str(path), "--source", "bfcl", "--json")
    assert isinstance(result.exception, UserError)
    assert "line 2" in str(result.exception)
    assert result.stdout == ""


def test_a_hostile_call_in_a_record_is_a_failed_call(tmp_path: Path) -> None:
    turns = [["x" * 1_000_000, f"open('{tmp_path}/w', 'w')", "\x00", "cd('\ud800')"]]
    path = recorded(tmp_path / "r.jsonl", {"task": "multi_turn_base_0", "turns": turns})
    assert lines(run("judge", path, "--source", "bfcl", "--json"))[0]["turns_passed"] == 0
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--source", "nowhere"),
        ("list", "--source", "bfcl", "--split", "middle"),
        ("show", "nobody", "--source", "bfcl"),
        ("judge", "no-such-file", "--source", "bfcl"),
        ("verify", "--tasks", "no-such-file"),
    ],
)
def test_a_users_error_is_one_sentence(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, UserError)
    assert "\n" not in str(result.exception)


def test_tasks_are_listed_and_shown_as_json() -> None:
    listed = lines(run("list", "--source", "bfcl", "--json"))
    assert len(listed) == 800
    assert {row["split"] for row in listed} == {"train", "heldout"}
    shown = lines(run("show", "multi_turn_base_7", "--source", "bfcl", "--json"))
    assert shown[0]["turns"][0]["ground_truth"] == list(TASKS[7].turns[0].ground_truth)
    assert "multi_turn_base_7" in run("show", "multi_turn_base_7", "--source", "bfcl").stdout


def test_verify_compares_with_the_packages_checker() -> None:
    report = lines(run("verify", "--source", "bfcl", "--cases", "200", "--json"))[0]
    assert (report["tasks"], report["ground_truths_passed"]) == (800, 800)
    assert (report["corruptions"], report["corruptions_agreed"]) == (200, 200)
    assert report["ratio"] > 0
    said = run("verify", "--source", "bfcl", "--cases", "50").stdout
    assert "800 of 800 ground truths pass" in said
    assert "50 of 50 corruptions" in said


def test_a_task_file_is_verified_and_a_ground_truth_that_fails_is_exit_code_1(tmp_path: Path) -> None:
    write_tasks(tmp_path / "good.jsonl", TASKS[:3])
    assert lines(run("verify", "--tasks", str(tmp_path / "good.jsonl"), "--json"))[0]["ground_truths_passed"] == 3
    broken = json.loads((tmp_path / "good.jsonl").read_text().splitlines()[0]) | {"initial_state": '{"TwitterAPI": 1}'}
    result = run("verify", "--tasks", recorded(tmp_path / "bad.jsonl", broken), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed"] == [TASKS[0].task]
