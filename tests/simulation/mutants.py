"""Broken rules: holes that the design closes, opened again one at a time to see that the simulation finds them.

They live here alone, as other functions put in the place of the real ones while a schedule runs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import streams.measure.agent
import streams.measure.close
import streams.measure.fold
import streams.pool.decide
import streams.pool.fold
import streams.seals.assembly
import streams.seals.reader
import streams.select.agent
import streams.select.fold
import streams.service.session
from schemas.rollouts import BarrierReached, RolloutFinished
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.measure.outcome import Outcome, outcome_of
from streams.measure.state import Evolved, MeasureState
from streams.measure.zones import after_group
from streams.pool.state import Candidate, PoolState
from streams.seals.assembly import Assembled, Assembly
from streams.seals.recovery import Recovery, recover
from streams.select.fold import Selected, SelectState
from streams.service.session import SelectPosition, Session
from tests.simulation.log import Place
from tests.simulation.wire import Patch

Committed = dict[Place, int]


@dataclass(frozen=True, slots=True)
class Mutant:
    """name: the rule that is broken. adjust: what it does to a session before it opens. impatient: nobody waits for
    the broker to have what was posted. first_seed: of the schedules that are tried, where few find it."""

    name: str
    patches: tuple[Patch, ...] = ()
    adjust: Callable[[Session, Committed], None] | None = None
    impatient: bool = False
    first_seed: int = 0


_result = streams.measure.fold._result
_barrier = streams.measure.fold._barrier
_selection = streams.select.fold._selection
_queue_of = streams.pool.decide.queue_of


def last_result_wins(state: MeasureState, offset: int, event: RolloutFinished) -> Evolved:
    """Takes the open results anew, without those of the event's group."""
    others = replace(state, results=type(state.results)())
    for result in state.results.values():
        if result.event.group != event.group:
            others = _result(others, result.offset, result.event).state
    return _result(others, offset, event)


def late_results_count(state: MeasureState, offset: int, event: RolloutFinished) -> Evolved:
    if event.step > state.step or event.task not in state.tasks or event.purpose == "evaluate":
        return _result(state, offset, event)
    task = after_group(state.tasks[event.task], event.task, event.category, outcome_of(event), state.rules)
    return _result(replace(state, tasks={**state.tasks, event.task: task}), offset, event)


def failed_is_zero(event: RolloutFinished) -> Outcome:
    outcome = outcome_of(event)
    return replace(outcome, passed=tuple(turns or 0 for turns in outcome.passed))


def older_learners_count(state: MeasureState, offset: int, event: BarrierReached) -> Evolved:
    return _barrier(state, offset, replace(event, generation=max(event.generation, state.generation)))


def second_barrier_counts(state: MeasureState, offset: int, event: BarrierReached) -> Evolved:
    again = event.step == state.step and event.generation >= state.generation
    return _barrier(replace(state, step=state.step - 1) if again else state, offset, event)


def recovery_forgets_tasks(recovery: Recovery, chunk: PartitionSealed) -> Recovery:
    before, after = recovery.state, recover(recovery, chunk)
    if after.state.step == before.step or chunk.last_of_epoch:
        return after
    kept = {task: state for task, state in after.state.tasks.items() if task not in before.tasks}
    return replace(after, state=replace(after.state, tasks={**kept, **before.tasks}))


def recovery_forgets_generation(recovery: Recovery, chunk: PartitionSealed) -> Recovery:
    recovered = recover(recovery, chunk)
    return replace(recovered, state=replace(recovered.state, generation=0))


def barrier_offset_is_ignored(session: Session, committed: Committed) -> None:
    """A worker goes on at the committed offset, and folds again what its seals have in them."""
    for partition, position in session.measure.items():
        start = committed.get((Topic.ROLLOUTS, partition), 0)
        position.state = replace(position.state, next_offset=min(start, position.state.next_offset))


def committed_offset_is_trusted(session: Session, committed: Committed) -> None:
    """A worker starts from what is committed, and not from what is sealed."""
    barrier_offset_is_ignored(session, committed)
    for partition, position in session.measure.items():
        empty = MeasureState(partition, next_offset=position.state.next_offset, step=position.state.step)
        position.state = replace(empty, generation=position.state.generation)


async def ack_at_once(self: Any, event: Any) -> None:
    await measure_take(self, event)
    self._sealing.acknowledge([event])


measure_take = streams.measure.agent.MeasureAgent.take


async def seeds_after_the_ack(self: Any, stream: Any, event: Any) -> None:
    await stream.ack(event)
    await select_take(self, stream, event)


select_take = streams.select.agent.SelectAgent.take


async def commits_are_trusted(self: Any, position: SelectPosition) -> None:
    await select_resume(self, replace(position, latest=()))


select_resume = streams.select.agent.SelectAgent.resume


def propose_early(state: SelectState) -> Selected:
    seals = state.seals.get(state.closed + 1, {})
    if state.proposed is not None or not seals or len(seals) < next(iter(seals.values())).partitions - 1:
        return Selected(state)
    proposed = _selection(state, [seals[partition] for partition in sorted(seals)])
    return Selected(replace(state, proposed=proposed), proposed=proposed)


def first_chunk_is_the_seal(assembly: Assembly, chunk: PartitionSealed) -> Assembled:
    return Assembled(assembly, chunk)


def nobody_is_superseded(state: Any, event: Any) -> bool:
    return False


def every_candidate_is_of_a_seed(cut: PoolState, last_seed_step: int, _: Any) -> tuple[list[Candidate], list[str]]:
    return _queue_of(cut, last_seed_step, None)


def no_seeds_again(session: Session, committed: Committed) -> None:
    """A worker does not write the seeds of a selection that it finds in the log."""
    if session.select is not None:
        session.select.seeds = {}


FOLD, POOL, SELECT = streams.measure.fold, streams.pool.fold, streams.select.fold
MEASURE_AGENT, SELECT_AGENT = streams.measure.agent.MeasureAgent, streams.select.agent.SelectAgent

MUTANTS = (
    Mutant("the last result of a group wins", ((FOLD, "_result", last_result_wins),)),
    Mutant("late results count", ((FOLD, "_result", late_results_count),)),
    Mutant("a failed slot is a zero", ((FOLD, "outcome_of", failed_is_zero),)),
    Mutant("barriers of an older learner count", ((FOLD, "_barrier", older_learners_count),)),
    Mutant("the second barrier of a key counts", ((FOLD, "_barrier", second_barrier_counts),)),
    Mutant("recovery ignores the barrier offset", adjust=barrier_offset_is_ignored),
    Mutant("recovery starts from the commits", adjust=committed_offset_is_trusted),
    Mutant("recovery forgets what a step did to a task", ((streams.seals.reader, "recover", recovery_forgets_tasks),)),
    Mutant(
        "recovery forgets the generation",
        ((streams.seals.reader, "recover", recovery_forgets_generation),),
        first_seed=300,
    ),
    Mutant("acknowledged before the broker has the seal", impatient=True),
    Mutant("acknowledged on delivery", ((MEASURE_AGENT, "take", ack_at_once),)),
    Mutant("selections acknowledged before their seeds", ((SELECT_AGENT, "take", seeds_after_the_ack),)),
    Mutant("N - 1 seals make a step", ((SELECT, "_propose", propose_early),)),
    Mutant("one chunk makes a seal", ((SELECT, "assemble", first_chunk_is_the_seal),)),
    Mutant("the pool takes events of older learners", ((POOL, "superseded", nobody_is_superseded),), first_seed=150),
    Mutant("the pool takes variants of no seed", ((streams.pool.decide, "queue_of", every_candidate_is_of_a_seed),)),
    Mutant("a restart does not write seeds again", adjust=no_seeds_again),
    Mutant("a committed selection has its seeds", ((SELECT_AGENT, "resume", commits_are_trusted),)),
    Mutant(
        "all committed selections but the newest have their seeds",
        ((streams.service.session, "RECENT", 1),),
        first_seed=1400,
    ),
)
