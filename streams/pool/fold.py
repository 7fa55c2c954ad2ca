"""The pool as a fold over `rods.pool`: pure, one topic, one partition.

Offsets below `next_offset` are skipped; of a natural key the first fact wins; a learner's event of an older generation
than the newest seen is ignored, and so is a variant that comes after its seed was settled. Decisions count only within
the boundary that is open, so that one written again by a later generation changes nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from eventlog.fence import superseded
from schemas.epochs import LearnerStarted
from schemas.identity import content_digest
from schemas.pool import (
    BoundaryOpened,
    Decision,
    OperatorDecided,
    PoolMaterialized,
    SeedSettled,
    TaskInjected,
    TaskProbed,
    TaskRegistered,
    TaskRetired,
    TaskSet,
    VariantVerified,
)
from schemas.task import TaskDefinition
from streams.measure.barrier import MAX_NAME_LENGTH, MAX_TURNS
from streams.measure.grown import Grown
from streams.pool.state import Candidate, Member, PoolState, Retired

V = TypeVar("V")


def evolve(state: PoolState, offset: int, event: Any) -> PoolState:
    """The state after the event at `offset`. An event of another topic is a TypeError: no fold reads two topics."""
    if offset < state.next_offset:
        return state
    state = replace(state, next_offset=offset + 1)
    if superseded(event, state.generation):
        return state
    return _apply(state, offset, event)


def skip(state: PoolState, offset: int) -> PoolState:
    """The state after a record that is no event, such as refused bytes."""
    return replace(state, next_offset=max(state.next_offset, offset + 1))


def _apply(state: PoolState, offset: int, event: Any) -> PoolState:
    match event:
        case LearnerStarted():
            return replace(state, generation=event.generation)
        case TaskRegistered():
            return _registered(state, event)
        case VariantVerified():
            return _verified(state, event)
        case SeedSettled():
            settled = state.settled
            return state if event.seed in settled else replace(state, settled=_with(settled, event.seed, event.outcome))
        case BoundaryOpened():
            return _opened(state, event)
        case TaskInjected():
            return _injected(state, event)
        case TaskRetired():
            return _retired(state, event)
        case TaskProbed():
            return _probed(state, event)
        case PoolMaterialized():
            return _materialized(state, offset, event)
        case OperatorDecided():
            return _operated(state, event)
        case _:
            raise TypeError(f"rods.pool carries no {type(event).__name__}")


def _registered(state: PoolState, event: TaskRegistered) -> PoolState:
    definition = event.definition
    if definition.task in state.definitions:
        return state
    if event.task_set == TaskSet.HELDOUT:
        return _defined(state, definition, heldout=_with(state.heldout, definition.task, None))
    member = Member(definition.task, original=True, seed="", since=0)
    return _defined(state, definition, members=_with(state.members, definition.task, member))


def _verified(state: PoolState, event: VariantVerified) -> PoolState:
    task = event.definition.task
    if task in state.definitions or event.seed in state.settled or not _measurable(event.definition):
        return state
    state = _defined(state, event.definition)
    candidate = Candidate(task, event.seed, event.epoch, event.step, event.rank, state.contents[task])
    return replace(state, candidates={**state.candidates, task: candidate})


def _measurable(definition: TaskDefinition) -> bool:
    """Whether a barrier may expect the task: as a member, one that none may would keep every later step open."""
    names = (definition.task, definition.category)
    return 1 <= definition.turns_total <= MAX_TURNS and max(map(len, names)) <= MAX_NAME_LENGTH


def _defined(state: PoolState, definition: TaskDefinition, **changes: Any) -> PoolState:
    """With other changes. The content is digested here, whatever the event says of it."""
    return replace(
        state,
        definitions=_with(state.definitions, definition.task, definition),
        contents=_with(state.contents, definition.task, content_digest(definition)),
        **changes,
    )


def _opened(state: PoolState, event: BoundaryOpened) -> PoolState:
    if state.boundary is not None or event.epoch != state.epoch + 1:
        return state
    # From here on members leave as well as come, which a plain map does better.
    members = state.members.plain() if isinstance(state.members, Grown) else state.members
    cut = replace(state, boundary=None, cut=None, members=members)
    return replace(cut, boundary=event, cut=cut)


def _decides(state: PoolState, epoch: int) -> bool:
    """Whether a decision of an epoch belongs to the boundary that is open."""
    return state.boundary is not None and state.boundary.epoch == epoch


def _injected(state: PoolState, event: TaskInjected) -> PoolState:
    if not _decides(state, event.epoch) or event.task in state.members or event.task not in state.definitions:
        return state
    back = state.retired.get(event.task)
    member = Member(event.task, back is not None and back.original, event.seed, event.epoch)
    return replace(
        state,
        members={**state.members, event.task: member},
        candidates=_without(state.candidates, event.task),
        retired=_without(state.retired, event.task),
    )


def _retired(state: PoolState, event: TaskRetired) -> PoolState:
    member = state.members.get(event.task)
    if not _decides(state, event.epoch) or member is None:
        return state
    gone = Retired(event.task, event.rule, event.epoch, event.epoch, member.original, member.seed)
    return replace(
        state,
        members=_without(state.members, event.task),
        retired={**state.retired, event.task: gone},
        dismissed=state.dismissed - {event.task},
    )


def _probed(state: PoolState, event: TaskProbed) -> PoolState:
    gone = state.retired.get(event.task)
    if not _decides(state, event.epoch) or gone is None:
        return state
    return replace(state, retired={**state.retired, event.task: replace(gone, probed=event.epoch)})


def _materialized(state: PoolState, offset: int, event: PoolMaterialized) -> PoolState:
    boundary, cut = state.boundary, state.cut
    if boundary is None or cut is None or boundary.epoch != event.epoch:
        return state
    queue = set(event.queue)
    kept = {
        task: candidate
        for task, candidate in state.candidates.items()
        if task in queue or task not in cut.candidates or candidate.step > boundary.last_seed_step
    }
    return replace(
        state,
        candidates=kept,
        boundary=None,
        cut=None,
        materialized=event,
        materialized_offset=offset + 1,
    )


def _operated(state: PoolState, event: OperatorDecided) -> PoolState:
    """An order takes back the one before it on the same task. An unknown order changes nothing."""
    if event.decision_id in state.operated or event.decision not in set(Decision):
        return state
    pinned, banned, dismissed = (tasks - {event.task} for tasks in (state.pinned, state.banned, state.dismissed))
    match Decision(event.decision):
        case Decision.PIN:
            pinned |= {event.task}
        case Decision.BAN:
            banned |= {event.task}
        case Decision.RETIRE:
            dismissed |= {event.task}
    operated = state.operated | {event.decision_id}
    return replace(state, operated=operated, pinned=pinned, banned=banned, dismissed=dismissed)


def _with(mapping: Mapping[str, V], key: str, value: V) -> Mapping[str, V]:
    """The mapping with one more; in constant time while it has only grown."""
    if isinstance(mapping, Grown) and key not in mapping:
        return mapping.adding(key, value)
    return {**mapping, key: value}


def _without(mapping: Mapping[str, V], key: str) -> dict[str, V]:
    return {other: value for other, value in mapping.items() if other != key}
