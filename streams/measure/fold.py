"""Measure: a pure fold over one partition of `rods.rollouts`.

``evolve(state, offset, event)`` takes every event of the partition in order and says what follows from it: a
TaskMeasured for an accepted result, the PartitionSealed that answers a barrier, or a refusal. The rules:

- The first result of a group counts, with all its slots; a later one is a duplicate. One with the wrong K or total is
  invalid, and refused.
- A barrier closes its step for good: results of a sealed step are late. A result of a step that is not open yet is
  refused, since a learner asks for a step only after the barrier of the one before is on every partition. So
  nothing outlives a barrier but the tasks, and a fold rebuilt from seals equals one that never stopped.
- Events of a learner older than the newest seen on this partition are ignored.
- Groups to evaluate are measured and enter nothing.
"""

from dataclasses import replace
from typing import Any

from eventlog.fence import superseded
from schemas.envelope import Event
from schemas.epochs import LearnerStarted
from schemas.rollouts import BarrierReached, Purpose, RolloutFinished
from schemas.topics import Topic
from streams.errors import OffsetGapError
from streams.measure.barrier import MAX_ATTEMPTS, MAX_NAME_LENGTH, MAX_TURNS, invalid, parsed_rules
from streams.measure.close import close
from streams.measure.outcome import outcome_of
from streams.measure.state import Evolved, MeasureState, Refusal, Result, Shape
from streams.measure.view import Accepted
from streams.measure.zones import after_group, zone_of

MAX_OPEN_RESULTS = 8192
_PURPOSES = frozenset(purpose.value for purpose in Purpose)


def evolve(state: MeasureState, offset: int, event: Any) -> Evolved:
    """Takes the event at `offset`. Offsets below the next one change nothing. Raises OffsetGapError."""
    if offset < state.next_offset:
        return Evolved(state)
    state = _advanced(state, offset)
    match event:
        case RolloutFinished():
            return _result(state, offset, event)
        case BarrierReached():
            return _barrier(state, offset, event)
        case LearnerStarted():
            return Evolved(_fenced(state, event))
        case _:
            return _refuse(state, offset, event, f"rods.rollouts carries no {type(event).__name__}")


def skip(state: MeasureState, offset: int) -> MeasureState:
    """Counts the undecodable message at `offset` as refused."""
    if offset < state.next_offset:
        return state
    return _advanced(state, offset).counting(refused=1)


def _advanced(state: MeasureState, offset: int) -> MeasureState:
    if offset > state.next_offset:
        raise OffsetGapError(Topic.ROLLOUTS, state.partition, state.next_offset, offset)
    return replace(state, next_offset=offset + 1)


def _fenced(state: MeasureState, event: LearnerStarted) -> MeasureState:
    if superseded(event, state.generation):
        return state.counting(superseded=1)
    return replace(state, generation=event.generation)


def _refuse(state: MeasureState, offset: int, event: Event, reason: str) -> Evolved:
    return Evolved(state.counting(refused=1), refusals=(Refusal(offset, event, reason),))


def _result(state: MeasureState, offset: int, event: RolloutFinished) -> Evolved:
    reason = _malformed(event)
    if reason:
        return _refuse(state, offset, event, reason)
    if event.purpose == Purpose.EVALUATE:
        return Evolved(state, Accepted(event, outcome_of(event)))
    if event.step <= state.step:
        return Evolved(state.counting(late=1))
    if event.step > state.step + 1:
        return _refuse(state, offset, event, f"step {event.step} is not open: the last barrier closed {state.step}")
    shape = Shape(event.group, event.task, event.purpose, event.k, event.turns_total, event.category)
    if shape in state.results:
        return Evolved(state.counting(duplicate=1))
    if len(state.results) >= MAX_OPEN_RESULTS:
        return _refuse(state, offset, event, f"more than {MAX_OPEN_RESULTS} results of one step on one partition")
    outcome = outcome_of(event)
    task = after_group(state.tasks.get(event.task), event.task, event.category, outcome, state.rules)
    results = state.results.adding(shape, Result(offset, event, outcome, task))
    accepted = Accepted(event, outcome, task.visits, zone_of(task.window, state.rules).value)
    return Evolved(replace(state, results=results), accepted)


def _malformed(event: RolloutFinished) -> str:
    """Why a result is invalid; empty where it may count."""
    if event.k != len(event.slots) or not 1 <= event.k <= MAX_ATTEMPTS:
        return f"wrong K: {event.k} with {len(event.slots)} slots"
    if not 1 <= event.turns_total <= MAX_TURNS:
        return f"wrong total: {event.turns_total} turns"
    if event.purpose not in _PURPOSES:
        return "unknown purpose"
    names = (event.group, event.task, event.category, event.execution)
    told = event.envelope
    if max(map(len, (*names, told.run_id, told.event_id, told.correlation_id or ""))) > MAX_NAME_LENGTH:
        return "a name is too long"
    return ""


def _barrier(state: MeasureState, offset: int, event: BarrierReached) -> Evolved:
    if superseded(event, state.generation):
        return Evolved(state.counting(superseded=1))
    state = replace(state, generation=event.generation)
    if event.step <= state.step:
        return Evolved(state.counting(duplicate=1))
    rules = parsed_rules(event.rules)
    if rules is None:
        return _refuse(state, offset, event, "a barrier's rules do not parse")
    reason = invalid(state, event)
    return _refuse(state, offset, event, reason) if reason else close(state, offset, event, rules)
