"""Properties of measure and select together, against a plain fold written here from the rules alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.codec import encode
from schemas.rules import MeasureRules, Rules, SelectRules
from schemas.seals import PartitionSealed, SelectionClosed
from schemas.topics import partition_of
from streams.measure.state import MeasureState
from streams.seals.recovery import Recovery, recover
from streams.select.fold import SelectState
from streams.select.fold import evolve as select
from tests.streams.rollout_log import barrier, expected, folded, result, seals

RULES = Rules(measure=MeasureRules(window=2), select=SelectRules(quota=2, cooldown_steps=1))
PARTITIONS = 3
TASKS = tuple(f"task-{index}" for index in range(8))
Passed = tuple[int | None, ...]


@dataclass(frozen=True)
class Delivery:
    """A result that reaches its partition during a step: of that step, or late or early by `shift`."""

    task: str
    passed: Passed
    shift: int
    execution: str


DELIVERIES = st.lists(
    st.builds(
        Delivery,
        task=st.sampled_from(TASKS),
        passed=st.tuples(*[st.one_of(st.none(), st.integers(0, 2))] * 4),
        shift=st.sampled_from((0, 0, 0, 0, -1, 1)),
        execution=st.sampled_from(("e1", "e2")),
    ),
    max_size=14,
)
RUNS = st.lists(st.tuples(st.sets(st.sampled_from(TASKS), max_size=6), DELIVERIES), min_size=1, max_size=5)
Run = list[tuple[set[str], list[Delivery]]]


def partition_log(run: Run, partition: int) -> list[Any]:
    events: list[Any] = []
    for step, (asked, deliveries) in enumerate(run, 1):
        own = [d for d in deliveries if partition_of(d.task, PARTITIONS) == partition]
        events += [result(d.task, d.passed, step=step + d.shift, execution=d.execution) for d in own]
        groups = [expected(task, step=step) for task in sorted(asked) if partition_of(task, PARTITIONS) == partition]
        last = step % 2 == 0
        events.append(
            barrier(*groups, step=step, partition=partition, partitions=PARTITIONS, rules=RULES, last=last, epoch=step)
        )
    return events


def sealed(run: Run, partition: int) -> list[PartitionSealed]:
    return seals(folded(partition_log(run, partition), MeasureState(partition)))


def selected(topic: Sequence[Any]) -> list[SelectionClosed]:
    """The selections over a topic, each written behind what is there when it is proposed."""
    log, state, found = list(topic), SelectState(), []
    for offset, event in enumerate(log):
        evolved = select(state, offset, event)
        if evolved.proposed:
            found.append(evolved.proposed)
            log.append(evolved.proposed)
        state = evolved.state
    return found


def plain_steps(run: Run) -> list[tuple[dict[str, Passed], list[str]]]:
    """Per step, what counts per expected task and the seeds, from the rules alone."""
    windows: dict[str, list[Passed]] = {}
    last_seed: dict[str, int] = {}
    steps = []
    for step, (asked, deliveries) in enumerate(run, 1):
        first: dict[str, Passed] = {}
        for delivery in deliveries:
            if delivery.shift == 0:
                first.setdefault(delivery.task, delivery.passed)
        counted = {task: first.get(task, (None,) * 4) for task in asked}
        ranked = []
        for task, passed in counted.items():
            if any(turns is not None for turns in passed):
                windows[task] = [*windows.get(task, []), passed][-2:]
                ranked += _boundary(task, windows[task])
        free = [pair for pair in sorted(ranked) if step - last_seed.get(pair[1], -9) > 1]
        seeds = [task for _, task in free[:2]]
        last_seed.update(dict.fromkeys(seeds, step))
        steps.append((counted, seeds))
    return steps


def _boundary(task: str, window: list[Passed]) -> list[tuple[Fraction, str]]:
    progress = [Fraction(turns, 2) for passed in window for turns in passed if turns is not None]
    mean = sum(progress, Fraction(0)) / len(progress)
    spread = len(set(progress)) > 1
    return [(-4 * mean * (1 - mean), task)] if Fraction(1, 5) <= mean <= Fraction(17, 20) and spread else []


@given(RUNS)
@settings(max_examples=60, deadline=None)
def test_seals_and_selections_equal_a_plain_fold(run: Run) -> None:
    by_partition = [sealed(run, partition) for partition in range(PARTITIONS)]
    selections = selected([seal for step in zip(*by_partition, strict=True) for seal in step])
    found = []
    for step, closed in enumerate(selections):
        groups = [group for partition in by_partition for group in partition[step].groups]
        found.append(({group.task: group.passed for group in groups}, [seed.task for seed in closed.seeds]))
    assert found == plain_steps(run)


@given(RUNS, st.data())
@settings(max_examples=40, deadline=None)
def test_replay_in_pieces_equals_replay_at_once(run: Run, data: st.DataObject) -> None:
    """Workers die after any event, rebuild from the seals that stand, and fold the rest again."""
    events = partition_log(run, 0)
    at_once = folded(events)
    written: list[PartitionSealed] = []
    position = 0
    while position < len(events):
        recovery = Recovery(MeasureState(0))
        for chunk in written:
            recovery = recover(recovery, chunk)
        state = recovery.state
        died = data.draw(st.integers(position + 1, len(events)))
        for evolved in folded(events[state.next_offset : died], state):
            assert evolved == at_once[evolved.state.next_offset - 1]
            lost = died < len(events) and evolved.state.next_offset == died
            written += () if lost else evolved.seals
        position = died
    kinds = {encode(chunk) for evolved in at_once for chunk in evolved.seals}
    assert {encode(chunk) for chunk in written} == kinds


@given(RUNS, st.data())
@settings(max_examples=40, deadline=None)
def test_duplicates_change_nothing(run: Run, data: st.DataObject) -> None:
    honest = [(asked, [delivery for delivery in deliveries if delivery.shift < 1]) for asked, deliveries in run]
    once = partition_log(honest, 0)
    more: list[Any] = []
    for event in once:
        more.append(event)
        if data.draw(st.booleans()):
            more.append(data.draw(st.sampled_from(more)))
    assert [seal.digest for seal in seals(folded(more))] == [seal.digest for seal in seals(folded(once))]


@given(RUNS, st.data())
@settings(max_examples=40, deadline=None)
def test_any_interleaving_of_partitions_gives_the_same_selections(run: Run, data: st.DataObject) -> None:
    queues = [sealed(run, partition) for partition in range(PARTITIONS)]
    in_order = selected([seal for queue in queues for seal in queue])
    topic: list[Any] = []
    while any(queues):
        queue = data.draw(st.sampled_from([queue for queue in queues if queue]))
        topic.append(queue.pop(0))
        if data.draw(st.booleans()):
            topic.append(data.draw(st.sampled_from(topic)))
    assert [encode(closed) for closed in selected(topic)] == [encode(closed) for closed in in_order]


@given(RUNS)
@settings(max_examples=40, deadline=None)
def test_a_seal_never_misses_a_result_before_its_barrier(run: Run) -> None:
    for partition in range(PARTITIONS):
        events = partition_log(run, partition)
        for seal in sealed(run, partition):
            barriers = [0, *(sealed_before.barrier_offset for sealed_before in sealed(run, partition))]
            open_since = barriers[seal.step - 1]
            for group in seal.groups:
                stood = [e for e in events[open_since : seal.barrier_offset] if _is_of(e, group.group)]
                assert group.execution == (stood[0].execution if stood else "")


def _is_of(event: Any, group: str) -> bool:
    return getattr(event, "group", None) == group
