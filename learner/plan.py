"""What an epoch runs: each member once, in steps, in an order that the seed decides. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from learner.in_flight import MAX_GROUPS_PER_STEP
from schemas.epochs import PlannedGroup
from schemas.identity import digest, group_id
from schemas.rollouts import Purpose
from schemas.rules import Rules


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The groups of one step."""

    epoch: int
    step: int
    groups: tuple[PlannedGroup, ...]
    last_of_epoch: bool


def plan_epoch(
    rules: Rules, epoch: int, first_step: int, members: Sequence[str], probes: Sequence[str]
) -> tuple[StepPlan, ...]:
    """The steps of an epoch: `tasks_per_step` members each, in the order of a hash of (seed, epoch, task); the probes
    join the last step. Equal members give equal plans, in whatever order they are given."""
    order = sorted(members, key=lambda task: digest(["order", rules.seed, epoch, task]))
    size = rules.rollout.tasks_per_step
    count = max(1, ceil(len(order) / size))
    plans = []
    for index in range(count):
        step, last = first_step + index, index == count - 1
        tasks = [(task, Purpose.TRAIN) for task in order[index * size : (index + 1) * size]]
        if last:
            tasks += [(task, Purpose.PROBE) for task in probes]
        groups = tuple(
            PlannedGroup(group_id(rules.seed, epoch, step, task, purpose), task, purpose) for task, purpose in tasks
        )
        plans.append(StepPlan(epoch, step, groups[:MAX_GROUPS_PER_STEP], last))
    return tuple(plans)


def held_out_groups(rules: Rules, epoch: int, step: int, heldout: Sequence[str]) -> tuple[PlannedGroup, ...]:
    """The evaluation of an epoch: the first `evaluate_tasks` held-out tasks."""
    return tuple(
        PlannedGroup(group_id(rules.seed, epoch, step, task, Purpose.EVALUATE), task, Purpose.EVALUATE)
        for task in heldout[: rules.learner.evaluate_tasks]
    )
