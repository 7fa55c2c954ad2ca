from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from schemas.codec import encode
from schemas.seals import PartitionSealed, SelectionClosed
from schemas.topics import partition_of
from streams.errors import OffsetGapError
from streams.measure.state import MeasureState
from streams.select.fold import Selected, SelectState, evolve, selection_digest, skip
from tests.streams.rollout_log import barrier, expected, result, seals
from tests.streams.rollout_log import folded as measured

TASKS = ("a", "b", "c", "d")


def partition_seals(partition: int, partitions: int, steps: int = 3) -> list[PartitionSealed]:
    events: list[Any] = []
    for step in range(1, steps + 1):
        own = [task for index, task in enumerate(TASKS) if index % partitions == partition]
        events += [result(task, passed=(0, 2, 1, step % 3), step=step) for task in own]
        groups = [expected(task, step=step) for task in own]
        events.append(barrier(*groups, step=step, partition=partition, partitions=partitions, pool_offset=partition))
    return seals(measured(events, MeasureState(partition)))


def folded(events: Iterable[Any], state: SelectState | None = None) -> list[Selected]:
    state = state or SelectState()
    found = []
    for offset, event in enumerate(events, state.next_offset):
        found.append(evolve(state, offset, event))
        state = found[-1].state
    return found


def log(events: Iterable[Any]) -> list[Any]:
    """The topic as one worker leaves it: what is proposed is written at the end."""
    topic, state = list(events), SelectState()
    for offset, event in enumerate(topic):
        evolved = evolve(state, offset, event)
        topic += [evolved.proposed] if evolved.proposed else []
        state = evolved.state
    return topic


def selections(topic: Iterable[Any]) -> list[SelectionClosed]:
    return [event for event in topic if isinstance(event, SelectionClosed)]


def test_a_step_is_selected_once_all_its_seals_are_in() -> None:
    (a,), (b,) = partition_seals(0, 2, 1), partition_seals(1, 2, 1)
    first, second = folded([a, b])
    assert first.proposed is None and second.proposed is not None
    assert [seed.task for seed in second.proposed.seeds] == ["a", "b"]
    assert (second.proposed.pool_offset, second.proposed.quota) == (1, 2)
    assert second.proposed.envelope.causation_id == a.envelope.event_id


def test_seeds_follow_from_the_selection_read_back() -> None:
    topic = log(partition_seals(0, 1, 1))
    seeds = folded(topic)[-1].seeds
    closed = selections(topic)[0]
    assert [seed.event.task for seed in seeds] == ["a", "b"]
    assert all(seed.event.envelope.causation_id == closed.envelope.event_id for seed in seeds)
    assert all(seed.event.envelope.correlation_id == seed.event.seed for seed in seeds)
    assert all(seed.partition == partition_of(seed.event.task, 1) for seed in seeds)
    assert (seeds[0].event.phi, seeds[0].event.quota, seeds[0].event.rank) == (1.0, 2, 0)


def test_a_selection_is_written_also_where_nothing_is_selected() -> None:
    (seal,) = seals(measured([barrier()]))
    proposed = folded([seal])[-1].proposed
    assert proposed is not None and proposed.seeds == () and proposed.digest
    assert folded([seal, proposed])[-1].seeds == ()


def test_steps_close_in_order() -> None:
    one, two, three = partition_seals(0, 1)
    topic = log([three, two, one])
    assert [closed.step for closed in selections(topic)] == [1, 2, 3]
    assert selections(topic) == selections(log([one, two, three]))


def test_digests_form_a_chain() -> None:
    first, second, _ = selections(log(partition_seals(0, 1)))
    assert second.digest == selection_digest(first.digest, 1, 2, 2, second.seeds)
    assert second.digest != selection_digest("", 1, 2, 2, second.seeds)


def test_the_number_of_partitions_changes_no_selection() -> None:
    alone = selections(log(partition_seals(0, 1)))
    shared = selections(log([*partition_seals(0, 2), *partition_seals(1, 2)]))
    assert [(closed.seeds, closed.digest) for closed in alone] == [(closed.seeds, closed.digest) for closed in shared]


def test_the_first_selection_of_a_step_counts() -> None:
    one, two, _ = partition_seals(0, 1)
    proposed = folded([one])[-1].proposed
    assert proposed is not None
    other = replace(proposed, seeds=proposed.seeds[:1], digest="other")
    steps = folded([one, other, proposed, two])
    assert [len(evolved.seeds) for evolved in steps] == [0, 1, 0, 0]
    assert steps[-1].state.alarms == 2 and steps[-1].state.duplicate == 1
    assert steps[-1].proposed is not None
    assert steps[-1].proposed.digest == selection_digest("other", 1, 2, 2, steps[-1].proposed.seeds)


def test_equal_selections_of_two_workers_raise_no_alarm() -> None:
    (one,) = partition_seals(0, 1, 1)
    proposed = folded([one])[-1].proposed
    state = folded([one, one, proposed, proposed, one])[-1].state
    assert (state.alarms, state.duplicate, state.closed) == (0, 3, 1)


def test_a_second_seal_that_says_something_else_is_an_alarm() -> None:
    one, *_ = partition_seals(0, 2)
    state = folded([one, replace(one, digest="other", groups=())])[-1].state
    assert (state.alarms, state.duplicate) == (1, 1) and state.seals[1][0] == one


@pytest.mark.parametrize("changes", [{"step": 5}, {"digest": "x", "seeds": "bad"}])
def test_a_selection_that_no_seal_supports_changes_nothing(changes: dict[str, Any]) -> None:
    (one,) = partition_seals(0, 1, 1)
    proposed = folded([one])[-1].proposed
    assert proposed is not None
    if "seeds" in changes:
        changes = {**changes, "seeds": (replace(proposed.seeds[0], phi="half"),)}
    steps = folded([one, replace(proposed, **changes), proposed])
    assert steps[1].state.alarms == 1 and steps[1].seeds == () and len(steps[2].seeds) == 2
    early = folded([proposed, one])
    assert early[0].state.alarms == 1 and early[1].proposed == proposed


def test_cooldown_follows_the_log() -> None:
    topic = log(partition_seals(0, 1))
    assert folded(topic)[-1].state.last == {"a": 3, "b": 3}


def test_a_restart_proposes_again_what_no_selection_answers() -> None:
    (one,) = partition_seals(0, 1, 1)
    first, again = folded([one])[-1], folded([one])[-1]
    assert first.state.proposed is not None and again.state.proposed is not None
    assert encode(first.state.proposed) == encode(again.state.proposed)


def test_a_gap_stops_the_fold_and_poison_takes_its_offset() -> None:
    (one,) = partition_seals(0, 1, 1)
    with pytest.raises(OffsetGapError):
        evolve(SelectState(), 1, one)
    assert evolve(skip(SelectState(), 0), 1, one).proposed is not None
    assert evolve(SelectState(next_offset=3), 1, one).state == SelectState(next_offset=3)


def test_closed_steps_leave_no_seals_behind() -> None:
    state = folded(log(partition_seals(0, 1)))[-1].state
    assert state.seals == {} and state.assembly.chunks == {} and state.closed == 3
