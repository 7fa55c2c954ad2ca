"""Closing a step on one partition: every expected group measured or missing, the tasks moved on, the seal written."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from schemas.envelope import Producer, derive
from schemas.rollouts import BarrierReached, ExpectedGroup
from schemas.rules import Rules
from schemas.seals import PartitionSealed, SealedGroup, TaskState
from streams.measure.grown import Grown
from streams.measure.outcome import Outcome, missing
from streams.measure.seal import sealed
from streams.measure.state import Counts, Evolved, MeasureState, Refusal, Result, Shape
from streams.measure.zones import after_group, is_boundary, zone_of


def close(state: MeasureState, offset: int, barrier: BarrierReached, rules: Rules) -> Evolved:
    """Answers a valid barrier. What it did not expect is dropped and counted; of the wrong K or total, refused."""
    left, known = dict(state.results.items()), rules == state.rules
    groups = tuple([_sealed_group(state, group, left, rules, known=known) for group in _in_order(barrier.expected)])
    refusals = _misshapen(barrier.expected, left)
    counted = state.counting(refused=len(refusals), unexpected=len(left) - len(refusals))
    closed = replace(
        state,
        partitions=barrier.partitions,
        epoch=barrier.epoch,
        step=barrier.step,
        rules=rules,
        tasks={**state.tasks, **{group.task: group.state for group in groups}},
        results=Grown(),
        counts=Counts(),
    )
    whole = tuple(sorted(closed.tasks.values(), key=lambda task: task.task)) if barrier.last_of_epoch else ()
    return Evolved(closed, seals=_seals(counted, offset, barrier, groups, whole), refusals=refusals)


def _in_order(expected: Iterable[ExpectedGroup]) -> list[ExpectedGroup]:
    return sorted(expected, key=lambda group: group.task)


def _sealed_group(
    state: MeasureState, expected: ExpectedGroup, left: dict[Shape, Result], rules: Rules, *, known: bool
) -> SealedGroup:
    """The group as the barrier finds it; takes its result out of `left`. known: results were judged by these rules."""
    shape = Shape(expected.group, expected.task, expected.purpose, expected.k, expected.turns_total, expected.category)
    result = left.pop(shape, None)
    execution = result.event.execution if result else ""
    outcome = result.outcome if result else missing(expected.group, expected.k, expected.turns_total)
    if result and known:
        return _group(expected, execution, outcome, result.task, rules)
    task = after_group(state.tasks.get(expected.task), expected.task, expected.category, outcome, rules)
    return _group(expected, execution, outcome, task, rules)


def _group(expected: ExpectedGroup, execution: str, outcome: Outcome, task: TaskState, rules: Rules) -> SealedGroup:
    zone = zone_of(task.window, rules)
    return SealedGroup(
        group=expected.group,
        task=expected.task,
        purpose=expected.purpose,
        category=expected.category,
        execution=execution,
        turns_total=expected.turns_total,
        passed=outcome.passed,
        reasons=outcome.reasons,
        policy_versions=outcome.policy_versions,
        trajectories=outcome.trajectories,
        zone=zone.value,
        boundary=outcome.moments.n > 0 and is_boundary(task.window, zone, rules),
        state=task,
    )


def _misshapen(expected: Iterable[ExpectedGroup], left: Mapping[Shape, Result]) -> tuple[Refusal, ...]:
    """Results of expected groups whose K, total, task, purpose or category is not the expected one."""
    groups = {group.group: group for group in expected}
    return tuple(
        [
            Refusal(result.offset, result.event, _misfit(groups[shape.group], shape))
            for shape, result in left.items()
            if shape.group in groups
        ]
    )


def _misfit(expected: ExpectedGroup, found: Shape) -> str:
    if found.k != expected.k:
        return f"wrong K: {found.k} where {expected.k} are expected"
    if found.turns_total != expected.turns_total:
        return f"wrong total: {found.turns_total} turns where {expected.turns_total} are expected"
    return "the task, purpose or category of a group is not the expected one"


def _seals(
    state: MeasureState,
    offset: int,
    barrier: BarrierReached,
    groups: tuple[SealedGroup, ...],
    whole: tuple[TaskState, ...],
) -> tuple[PartitionSealed, ...]:
    seal = PartitionSealed(
        epoch=barrier.epoch,
        step=barrier.step,
        partition=barrier.partition,
        partitions=barrier.partitions,
        chunk=0,
        chunks=1,
        barrier_offset=offset,
        last_of_epoch=barrier.last_of_epoch,
        rules=barrier.rules,
        pool_offset=barrier.pool_offset,
        digest="",
        groups=groups,
        state=whole,
        late=state.counts.late,
        duplicate=state.counts.duplicate,
        refused=state.counts.refused + state.counts.unexpected,
        generation=state.generation,
    )
    return tuple([derive(chunk, barrier.envelope, Producer.MEASURE) for chunk in sealed(seal)])
