"""Task definitions in files: one JSON object a line, the fields of `TaskDefinition`, read strictly."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import Field

from producers.environments.calls import parse_call
from producers.environments.errors import CallError, TaskSourceError
from producers.environments.jsonlines import Record, broken, read_records
from producers.environments.sources import SOURCES
from schemas.task import TaskDefinition, Turn

Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=100_000)]


class _TurnRecord(Record):
    requests: Annotated[tuple[Text, ...], Field(max_length=16)]
    ground_truth: Annotated[tuple[Text, ...], Field(max_length=100)]
    withheld: Annotated[tuple[Name, ...], Field(max_length=1_000)] = ()


class _TaskRecord(Record):
    task: Name
    source: Name
    category: Name
    scenario: Name
    classes: Annotated[tuple[Name, ...], Field(max_length=64)]
    initial_state: Annotated[str, Field(max_length=4_000_000)]
    turns: Annotated[tuple[_TurnRecord, ...], Field(min_length=1, max_length=100)]
    parent: Name | None = None

    def definition(self) -> TaskDefinition:
        turns = tuple(Turn(turn.requests, turn.ground_truth, turn.withheld) for turn in self.turns)
        return TaskDefinition(
            self.task,
            self.source,
            self.category,
            self.scenario,
            self.classes,
            self.initial_state,
            turns,
            self.parent,
        )


def read_tasks(path: Path) -> tuple[TaskDefinition, ...]:
    """All tasks of a file, in order. Raises TaskSourceError, one sentence that names the line, for any flaw."""
    tasks: dict[str, TaskDefinition] = {}
    for number, record in read_records(path, _TaskRecord):
        task = record.definition()
        reason = "its id occurs before" if task.task in tasks else _flaw(task)
        if reason:
            raise broken(path, number, f"task {task.task!r}: {reason}")
        tasks[task.task] = task
    if not tasks:
        raise TaskSourceError(f"{path} holds no task")
    return tuple(tasks.values())


def _flaw(task: TaskDefinition) -> str:
    if task.source not in SOURCES:
        return f"there is no task source {task.source!r}"
    try:
        if not isinstance(json.loads(task.initial_state), dict):
            return "initial_state is not the JSON text of an object"
    except (ValueError, RecursionError):
        return "initial_state is not JSON text"
    try:
        for turn in task.turns:
            for call in turn.ground_truth:
                parse_call(call)
    except CallError as error:
        return f"a ground-truth call cannot be read, since {error}"
    return ""
