"""The fold of one task as a framework's own store would hold it: plain lists in, plain lists out."""

from typing import Any

from benchmarks.streams_parts.load import RULES
from schemas.rollouts import RolloutFinished
from schemas.seals import TaskState, WindowGroup
from streams.measure.outcome import outcome_of
from streams.measure.zones import after_group


def folded(before: list[Any] | None, event: RolloutFinished) -> TaskState:
    """A task after a group, from what a table holds."""
    state = None
    if before:
        task, category, window, *counts = before
        state = TaskState(task, category, tuple([WindowGroup(*group) for group in window]), *counts)
    return after_group(state, event.task, event.category, outcome_of(event), RULES)


def plain(state: TaskState) -> list[Any]:
    """A task's state as a table holds it."""
    window = [[g.group, g.n, g.sum_passed, g.sum_squares, g.turns_total] for g in state.window]
    return [state.task, state.category, window, state.visits, state.low_streak, state.high_streak]
