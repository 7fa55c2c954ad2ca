"""Recorded tool calls from anywhere: JSON lines such as ``{"task": "t1", "turns": [["cd(folder='a')"], []]}``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from producers.environments.jsonlines import Record, broken, read_records
from schemas.task import TaskDefinition


class RecordedCalls(Record):
    """What was called in an attempt at a task, turn by turn, in source form. The calls are unread and untrusted."""

    task: Annotated[str, Field(min_length=1, max_length=200)]
    turns: Annotated[tuple[Annotated[tuple[str, ...], Field(max_length=1_000)], ...], Field(max_length=1_000)]


def read_recorded(path: Path, tasks: Mapping[str, TaskDefinition]) -> tuple[RecordedCalls, ...]:
    """All records of a file, checked before any is judged. Raises TaskSourceError, naming the line, for any flaw."""
    records = []
    for number, record in read_records(path, RecordedCalls):
        task = tasks.get(record.task)
        if task is None:
            raise broken(path, number, f"there is no task {record.task!r} in this source")
        if len(record.turns) > task.turns_total:
            raise broken(path, number, f"{len(record.turns)} turns, but {task.task} has {task.turns_total}")
        records.append(record)
    return tuple(records)
