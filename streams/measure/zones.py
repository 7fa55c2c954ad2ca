"""A task's window and the zone of its mean (arXiv 2606.19047): mastered above α₊, hard below α₋, boundary between."""

from collections.abc import Sequence
from dataclasses import replace

from schemas.rules import Rules
from schemas.seals import TaskState, WindowGroup, Zone
from streams.measure.exact import pooled
from streams.measure.outcome import Outcome


def unvisited(task: str, category: str) -> TaskState:
    """A task that no live group has visited."""
    return TaskState(task, category, (), 0, 0, 0)


def visited(state: TaskState, group: WindowGroup, rules: Rules) -> TaskState:
    """The task after a group with at least one live slot."""
    window = (*state.window, group)[-rules.measure.window :]
    figures = pooled(window)
    return TaskState(
        task=state.task,
        category=state.category,
        window=window,
        visits=state.visits + 1,
        low_streak=state.low_streak + 1 if figures.below(rules.pool.drift_low) else 0,
        high_streak=state.high_streak + 1 if figures.above(rules.pool.drift_high) else 0,
    )


def after_group(before: TaskState | None, task: str, category: str, outcome: Outcome, rules: Rules) -> TaskState:
    """The task after a group. One without a live slot changes neither window nor visits nor streaks."""
    state = before or unvisited(task, category)
    if state.category != category:
        state = replace(state, category=category)
    return visited(state, outcome.window_group, rules) if outcome.moments.n else state


def zone_of(window: Sequence[WindowGroup], rules: Rules) -> Zone:
    """The zone of a window's mean; NONE where no live slot was ever measured."""
    if not window:
        return Zone.NONE
    figures = pooled(window)
    if figures.above(rules.measure.alpha_high):
        return Zone.MASTERED
    return Zone.HARD if figures.below(rules.measure.alpha_low) else Zone.BOUNDARY


def is_boundary(window: Sequence[WindowGroup], zone: Zone, rules: Rules) -> bool:
    """Whether a task can teach: rewards can sit at one half without spread, and then give no gradient."""
    return zone is Zone.BOUNDARY and pooled(window).varies_above(rules.measure.min_variance)
