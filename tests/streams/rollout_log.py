"""Builders of events on `rods.rollouts`, and the plain way to fold a partition."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from schemas.envelope import Producer, stamp
from schemas.epochs import LearnerStarted
from schemas.identity import group_id
from schemas.rollouts import BarrierReached, ExpectedGroup, RolloutFinished, Slot
from schemas.rules import Rules
from schemas.seals import PartitionSealed, SealedGroup
from streams.measure.fold import evolve
from streams.measure.seal import join_chunks
from streams.measure.state import Evolved, MeasureState

RULES = Rules()


def live(passed: int, total: int = 2, **changes: Any) -> Slot:
    outcomes = (True,) * passed + (False,) * (passed < total)
    slot = Slot("finished", passed, total, outcomes, 3, 12, 1000, 1, "ab" * 32)
    return replace(slot, **changes)


def failed(reason: str | None = "timeout") -> Slot:
    return Slot("failed", 0, 2, (), 0, 0, 0, 1, "", reason)


def result(
    task: str = "t",
    passed: Sequence[int | None] = (0, 1, 2, 1),
    *,
    step: int = 1,
    total: int = 2,
    execution: str = "e1",
    purpose: str = "train",
    category: str = "base",
    group: str | None = None,
    run: str = "run",
    **changes: Any,
) -> RolloutFinished:
    slots = tuple(failed() if turns is None else live(turns, total) for turns in passed)
    name = group if group is not None else group_id(1, 1, step, task, purpose)
    event = RolloutFinished(name, execution, 1, step, task, purpose, category, len(slots), total, slots)
    return stamp(replace(event, **changes), run_id=run, occurred_at=1_000_000 + step, producer=Producer.ROLLOUT)


def expected(task: str = "t", *, step: int = 1, k: int = 4, total: int = 2, **changes: Any) -> ExpectedGroup:
    purpose = changes.pop("purpose", "train")
    group = changes.pop("group", group_id(1, 1, step, task, purpose))
    return ExpectedGroup(group, task, purpose, k, total, changes.pop("category", "base"))


def barrier(
    *groups: ExpectedGroup,
    step: int = 1,
    rules: Rules = RULES,
    generation: int = 1,
    partition: int = 0,
    partitions: int = 1,
    last: bool = False,
    epoch: int = 1,
    run: str = "run",
    **changes: Any,
) -> BarrierReached:
    event = BarrierReached(
        generation, epoch, step, partition, partitions, groups, rules.canonical(), last, changes.pop("pool_offset", 7)
    )
    return stamp(replace(event, **changes), run_id=run, occurred_at=2_000_000 + step, producer=Producer.LEARNER)


def started(generation: int, nonce: str = "n") -> LearnerStarted:
    return stamp(LearnerStarted(generation, nonce), run_id="run", occurred_at=1, producer=Producer.LEARNER)


def folded(events: Iterable[Any], state: MeasureState | None = None) -> list[Evolved]:
    """What each event comes to, from the state's next offset on."""
    state = state or MeasureState(0)
    steps = []
    for offset, event in enumerate(events, state.next_offset):
        evolved = evolve(state, offset, event)
        steps.append(evolved)
        state = evolved.state
    return steps


def seals(steps: Iterable[Evolved]) -> list[PartitionSealed]:
    """The whole seals, in order."""
    return [join_chunks(evolved.seals) for evolved in steps if evolved.seals]


def seal_of(*events: Any) -> PartitionSealed:
    """The last seal of a partition's events."""
    return seals(folded(events))[-1]


def group_of(*events: Any) -> SealedGroup:
    """The only group of the last seal."""
    (group,) = seal_of(*events).groups
    return group
