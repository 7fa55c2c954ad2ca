"""Why one side of a comparison did not decide what the other did, in one clause. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.rules import Rules
from schemas.seals import SealedGroup, SelectedSeed, Zone
from streams.measure.exact import above, below, mean_of, text_of, variance_of
from streams.pool.decide import is_live
from streams.pool.evidence import Evidence
from streams.pool.state import PoolState


@dataclass(frozen=True, slots=True)
class StepSide:
    """A step as one side saw it, and its seeds.

    groups: train groups by task.
    last: task to the step it was last a seed.
    """

    rules: Rules
    pool: PoolState
    groups: Mapping[str, SealedGroup]
    last: Mapping[str, int]
    seeds: tuple[SelectedSeed, ...]


def why_no_seed(side: StepSide, task: str, step: int) -> str:
    """Why a task was no seed at a step."""
    rules, group = side.rules, side.groups.get(task)
    if rules.curriculum == "static":
        return "a static curriculum has no seeds"
    if task not in side.pool.members:
        return "it was not in the pool"
    if group is None or not is_live(group):
        return "it was not measured"
    if task in side.last and step - side.last[task] <= rules.select.cooldown_steps:
        return f"it was a seed at step {side.last[task]}, and the cooldown is {rules.select.cooldown_steps} steps"
    if rules.curriculum == "rods" and not group.boundary:
        return _zone_reason(group, rules)
    return f"it ranked below the quota of {rules.select.quota} in {group.category}"


def _zone_reason(group: SealedGroup, rules: Rules) -> str:
    window, measure = group.state.window, rules.measure
    mean = text_of(mean_of(window))
    if group.zone == Zone.BOUNDARY:
        return f"its variance {text_of(variance_of(window))} is not above {measure.min_variance}"
    if group.zone == Zone.HARD:
        return f"its mean {mean} is below alpha_low {measure.alpha_low}"
    return f"its mean {mean} is above alpha_high {measure.alpha_high}"


def why_kept(rules: Rules, cut: PoolState, evidence: Evidence, task: str) -> str:
    """Why a task was not retired at a boundary."""
    member, state, group = cut.members.get(task), evidence.states.get(task), evidence.groups.get(task)
    if member is None:
        return "it was not in the pool"
    if not rules.pool.retire:
        return "nothing is retired"
    if task in cut.pinned:
        return "an operator pinned it"
    if member.original and rules.pool.protect_originals:
        return "originals are protected"
    if group is None or state is None or not is_live(group):
        return "it was not measured in this epoch"
    mean = mean_of(state.window)
    streak = max(state.low_streak, state.high_streak)
    if below(mean, rules.pool.drift_low) or above(mean, rules.pool.drift_high):
        return (
            f"its mean {text_of(mean)} was out of bounds for {streak} visits, and the patience is {rules.pool.patience}"
        )
    return f"its mean {text_of(mean)} is within {rules.pool.drift_low} and {rules.pool.drift_high}"


def why_retired(rule: str, mean: str, visits: int) -> str:
    """The rule that a retirement names, and on what."""
    return f"{rule} with the mean {mean or 'unknown'} after {visits} visits"


def why_not_injected(cut: PoolState, queue: tuple[str, ...], task: str, seed_selected: bool) -> str:
    """Why a task did not come in at a boundary."""
    if task in cut.members:
        return "it was in the pool already"
    if not seed_selected:
        return "its seed was not selected"
    if task in queue:
        return "it waits: the share of the pool, or the room under p_max, is used up"
    return "it repeats a task, or was not verified before the cut"
