"""Recorded tool calls from anywhere: JSON lines such as ``{"task": "t1", "turns": [["cd(folder='a')"], []]}``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from producers.environments.jsonlines import broken, read_lines
from schemas.task import TaskDefinition

CALLS_PER_TURN = 1_000


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """What was called in an attempt at a task, turn by turn, in source form. The calls are unread and untrusted."""

    task: str
    turns: tuple[tuple[str, ...], ...]


def read_recorded(path: Path, tasks: Mapping[str, TaskDefinition]) -> tuple[RecordedCalls, ...]:
    """All records of a file, checked before any is judged; other keys are ignored, and a call may be any text.

    Raises TaskSourceError, one sentence that names the line, for whatever is no record of one of the tasks.
    """
    return tuple(_recorded(path, number, line, tasks) for number, line in read_lines(path))


def _recorded(path: Path, number: int, line: bytes, tasks: Mapping[str, TaskDefinition]) -> RecordedCalls:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise broken(path, number, "not JSON") from None
    if not isinstance(record, dict) or not isinstance(record.get("task"), str) or "turns" not in record:
        raise broken(path, number, 'not an object with "task", a text, and "turns"')
    name, turns = record["task"], record["turns"]
    if name not in tasks:
        raise broken(path, number, f"there is no task {name[:200]!a} in this source")
    if not _are_turns(turns):
        raise broken(path, number, f"turns must be lists of calls, each a text, at most {CALLS_PER_TURN} a turn")
    if len(turns) > tasks[name].turns_total:
        raise broken(path, number, f"{len(turns)} turns, but {name} has {tasks[name].turns_total}")
    return RecordedCalls(name, tuple(tuple(calls) for calls in turns))


def _are_turns(turns: Any) -> TypeGuard[list[list[str]]]:
    return isinstance(turns, list) and all(
        isinstance(calls, list) and len(calls) <= CALLS_PER_TURN and all(isinstance(call, str) for call in calls)
        for calls in turns
    )
