"""Tasks written to files, and judged by the package's own checker."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from producers.environments.bfcl.reference import ReferenceChecker, failed_turn
from schemas.task import TaskDefinition


def write_tasks(path: Path, tasks: Iterable[TaskDefinition]) -> None:
    """One task a line."""
    path.write_text("".join(json.dumps(asdict(task)) + "\n" for task in tasks))


def first_failed(task: TaskDefinition, turns: Sequence[Sequence[str]]) -> int | None:
    """The turn of a record that the checker fails, or None where all pass."""
    checker = ReferenceChecker()
    try:
        answer = checker.verdict(checker.entry(task), [turn.ground_truth for turn in task.turns], turns, "reference")
        return failed_turn(answer)
    finally:
        checker.forget()
