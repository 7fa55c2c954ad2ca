from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.pool import SeedSettled, Settlement
from schemas.rollouts import Purpose
from schemas.seals import PartitionSealed, SelectionClosed
from streams.measure import seal as seals
from streams.pool.evidence import SealedSteps
from tests.streams.pool.build import group, seal, selection


def log_of(*events: PartitionSealed | SelectionClosed) -> SealedSteps:
    log = SealedSteps()
    for offset, event in enumerate(events):
        log.evolve(offset, event)
    return log


def epoch_of_two_steps(first: int = 1, epoch: int = 1) -> list[PartitionSealed | SelectionClosed]:
    return [
        *seal(first, 0, groups=[group("a", 10)], epoch=epoch),
        *seal(first, 1, epoch=epoch),
        selection(first, "a", epoch=epoch),
        *seal(first + 1, 1, groups=[group("b", 20, visits=7)], last=True, epoch=epoch),
        *seal(first + 1, 0, last=True, epoch=epoch),
        selection(first + 1, "b", "c", epoch=epoch),
    ]


def chunks(monkeypatch: pytest.MonkeyPatch, *names: str, passed: int = 10) -> tuple[PartitionSealed, ...]:
    """A seal of step 1 that is the only partition's, one chunk a group."""
    monkeypatch.setattr(seals, "MAX_CHUNK_BYTES", seals._ENVELOPE_BYTES + 1)
    made = seal(1, groups=[group(name, passed) for name in names], n=1)
    assert len(made) == len(names)
    return made


def test_a_step_is_complete_once_every_partition_is_sealed() -> None:
    log = log_of(*seal(1, 1))
    assert not log.complete(1)
    log.evolve(1, seal(1, 0)[0])
    assert log.complete(1) and not log.complete(2)


def test_second_facts_that_say_something_else_are_counted_by_epoch() -> None:
    first = epoch_of_two_steps()
    log = log_of(*first, *first, replace(first[0], digest="other"), replace(first[2], digest="other"))
    assert log.evidence(1, 2).contradicted == 2
    assert log.evidence(1, 2).groups == log_of(*first).evidence(1, 2).groups


def test_a_seal_in_chunks_counts_once_all_are_in(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = chunks(monkeypatch, "a", "b", "c")
    log = log_of(third, first)
    assert not log.complete(1)
    log.evolve(2, second)
    assert log.complete(1)
    assert [sealed.task for sealed in log.steps[1].groups()] == ["a", "b", "c"]


def test_chunks_of_two_workers_that_died_midway_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = chunks(monkeypatch, "a", "b"), chunks(monkeypatch, "a", "b", passed=12)
    log = log_of(mine[0], other[0], other[1], mine[1])
    assert {sealed.passed for sealed in log.steps[1].groups()} == {group("a", 12).passed}


def test_the_first_whole_seal_and_the_first_selection_of_a_step_count() -> None:
    twice = [*seal(1, groups=[group("a", 10)], n=1), *seal(1, groups=[group("a", 20)], n=1)]
    log = log_of(*twice, selection(1, "a"), selection(1, "b"))
    assert [sealed.zone for sealed in log.steps[1].groups()] == ["boundary"]
    assert log.selections[1] == selection(1, "a")


def test_a_selection_counts_only_behind_the_seals_it_follows_from() -> None:
    log = log_of(*seal(1, 0), selection(1, "early"), *seal(1, 1), selection(2, "other"), selection(1, "a"))
    assert log.selections == {1: selection(1, "a")}


def test_offsets_already_seen_change_nothing() -> None:
    log = log_of(*seal(1, n=1))
    log.evolve(0, selection(1))
    assert log.selections == {}


def test_an_event_of_another_topic_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"rods\.seals carries no SeedSettled"):
        SealedSteps().evolve(0, SeedSettled(0, "s", 1, 1, Settlement.DONE, 1))


def test_evidence_is_the_groups_of_the_epoch_and_the_states_after_its_last_step() -> None:
    found = log_of(*epoch_of_two_steps()).evidence(1, 2)
    assert (found.epoch, found.selection_digest) == (1, "selected-2")
    assert set(found.groups) == {"a", "b"}
    assert {name: state.visits for name, state in found.states.items()} == {"b": 7}


def test_evidence_before_training_is_empty() -> None:
    found = log_of(*epoch_of_two_steps()).evidence(0, 0)
    assert (found.selection_digest, found.groups, found.states) == ("", {}, {})


@pytest.mark.parametrize("absent", range(6))
def test_evidence_with_a_seal_or_a_selection_missing_is_refused(absent: int) -> None:
    events = epoch_of_two_steps()
    del events[absent]
    with pytest.raises(ValueError, match="the seals of epoch 1 up to step 2 are not complete"):
        log_of(*events).evidence(1, 2)


def test_evidence_of_a_step_that_does_not_end_its_epoch_is_refused() -> None:
    with pytest.raises(ValueError, match="step 1 is not the last of epoch 1"):
        log_of(*epoch_of_two_steps()).evidence(1, 1)


def test_groups_to_evaluate_are_no_evidence() -> None:
    stray = group("z", 10, purpose=Purpose.EVALUATE)
    found = log_of(*seal(1, groups=[stray], last=True, n=1), selection(1)).evidence(1, 1)
    assert found.groups == {}


def test_seeds_come_in_the_order_of_their_selection() -> None:
    log = log_of(*epoch_of_two_steps())
    assert [seed.task for seed in log.seeds(2)] == ["a", "b", "c"]
    assert [seed.task for seed in log.seeds(1)] == ["a"]


def test_earlier_epochs_are_forgotten_but_for_selections_whose_seeds_are_still_awaited() -> None:
    log = log_of(*epoch_of_two_steps(), *epoch_of_two_steps(3, 2))
    log.forget_before(2, seed_step=1)
    assert set(log.steps) == {3, 4}
    assert set(log.selections) == {2, 3, 4}
    assert log.evidence(2, 4).selection_digest == "selected-4"
    log.forget_before(3, seed_step=4)
    assert (log.steps, log.selections) == ({}, {})


def test_what_was_ever_selected_is_evidence_of_every_boundary_to_come() -> None:
    log = log_of(*epoch_of_two_steps(), *epoch_of_two_steps(3, 2))
    log.forget_before(2, seed_step=2)
    selected = log.evidence(2, 4).selected
    assert selected is not None
    assert sorted(selected.values()) == [1, 2, 2, 3, 4, 4]
    assert log.evidence(0, 0).selected == {}


@given(st.permutations(range(4)), st.lists(st.integers(0, 3), max_size=3))
def test_neither_the_order_of_partitions_nor_deliveries_again_change_the_evidence(
    order: list[int], again: list[int]
) -> None:
    sealed = [seal(1, partition, groups=[group(f"t{partition}", 10)], last=True, n=4)[0] for partition in range(4)]
    log = log_of(*[sealed[n] for n in [*order, *again]], selection(1, "t0"))
    straight = log_of(*sealed, selection(1, "t0"))
    assert log.evidence(1, 1) == straight.evidence(1, 1)
    assert log.steps[1].groups() == straight.steps[1].groups()


def test_a_late_seal_of_a_closed_step_changes_nothing() -> None:
    log = log_of(*seal(1, n=1), selection(1))
    log.forget_before(2, seed_step=1)
    log.evolve(2, replace(seal(1, n=1)[0], digest="other"))
    assert log.steps == {}
