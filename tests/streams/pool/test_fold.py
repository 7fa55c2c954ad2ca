from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import content_digest
from schemas.pool import Decision, PoolMaterialized, Settlement, TaskInjected, TaskProbed, TaskRetired
from schemas.rollouts import RolloutFinished
from streams.pool.fold import evolve, skip
from streams.pool.state import PoolState
from tests.streams.pool.build import (
    closed,
    first_pool,
    folded,
    group,
    opened,
    ordered,
    registered,
    rules,
    seed,
    settled,
    started,
    task,
    variant,
)

RULES = rules(inject_share="0.5")


def test_originals_are_members_and_held_out_tasks_are_not() -> None:
    state = folded([registered("a"), registered("h2", "heldout"), registered("h1", "heldout")])
    assert list(state.members) == ["a"] and state.members["a"].original
    assert list(state.heldout) == ["h2", "h1"]
    assert set(state.definitions) == {"a", "h1", "h2"}


def test_the_first_registration_of_a_task_counts() -> None:
    state = folded([registered("a", content="first"), registered("a", "heldout", content="second")])
    assert state.definitions["a"] == task("a", "first")
    assert state.heldout == {}


def test_offsets_below_the_next_one_change_nothing() -> None:
    state = folded([registered("a"), registered("b")])
    assert evolve(state, 1, registered("c")) is state
    assert skip(state, 0).next_offset == 2 and skip(state, 2).next_offset == 3


def test_an_event_of_another_topic_is_an_error() -> None:
    alien = RolloutFinished("g", "e", 1, 1, "t", "train", "base", 0, 1, ())
    with pytest.raises(TypeError, match=r"rods\.pool carries no RolloutFinished"):
        folded([alien])


def test_events_of_older_learners_are_ignored_on_this_partition() -> None:
    state = folded([registered("a"), started(3)])
    state = folded([registered("b", generation=2), opened(0, RULES, generation=2), started(2)], state)
    assert (set(state.members), state.boundary, state.generation) == ({"a"}, None, 3)
    state = folded([registered("b", generation=3)], state)
    assert set(state.members) == {"a", "b"}


def test_a_settlement_by_synthesis_is_not_fenced_and_one_by_an_older_learner_is() -> None:
    state = folded([started(3), settled("a"), settled("b", outcome=Settlement.EXPIRED, generation=2)])
    assert state.settled == {seed("a"): "done"}


def test_the_first_settlement_of_a_seed_counts() -> None:
    state = folded([settled("a", outcome=Settlement.EXPIRED), settled("a", outcome=Settlement.DONE)])
    assert state.settled == {seed("a"): "expired"}


def test_a_variant_after_its_seed_is_settled_is_late() -> None:
    early, late = variant("a", "one"), variant("a", "two")
    state = folded([early, settled("a"), late])
    assert list(state.candidates) == [early.definition.task]
    assert late.definition.task not in state.definitions


def test_a_variant_that_no_barrier_may_expect_never_waits() -> None:
    claimed = variant("a", "one")
    changes: list[dict[str, Any]] = [
        {"turns": ()},
        {"turns": claimed.definition.turns * 5000},
        {"category": "c" * 5000},
    ]
    for change in changes:
        state = folded([replace(claimed, definition=replace(claimed.definition, **change))])
        assert not state.candidates and not state.definitions


def test_a_variants_content_is_digested_here_whatever_it_says_of_itself() -> None:
    claimed = replace(variant("a", "one"), content="something else")
    state = folded([claimed])
    assert state.candidates[claimed.definition.task].content == content_digest(claimed.definition)


def test_the_cut_is_the_state_before_the_boundary_and_stays_what_it_was() -> None:
    before = folded([registered("a"), variant("a", "one")])
    state = folded([opened(0, RULES), variant("a", "two"), registered("b")], before)
    assert state.cut == replace(before, next_offset=3)
    assert len(state.candidates) == 2


def test_a_second_boundary_of_an_epoch_is_ignored() -> None:
    first = folded([registered("a"), opened(0, RULES)])
    assert folded([opened(0, rules(p_max=7)), opened(1, RULES)], first) == replace(first, next_offset=4)


def test_boundaries_come_in_the_order_of_epochs() -> None:
    state = first_pool(RULES, "a")
    assert folded([opened(2, RULES)], state).boundary is None
    assert folded([opened(0, RULES)], state).boundary is None


def test_decisions_outside_the_open_boundary_change_nothing() -> None:
    state = folded([variant("a", "one")], first_pool(RULES, "a", "b"))
    made = variant("a", "one").definition.task
    strays: list[Any] = [
        TaskInjected(1, 1, made, "", False),
        TaskRetired(1, 1, "a", "drift_low", "", "", 0, ()),
        TaskProbed(1, 1, "b", "hard", "", False),
        PoolMaterialized(1, 1, 1, "d", "", (), (), 0, 0, {}),
    ]
    assert folded(strays, state) == replace(state, next_offset=state.next_offset + 4)
    state = folded([opened(1, RULES)], state)
    others = [replace(event, epoch=2) for event in strays]
    assert folded(others, state) == replace(state, next_offset=state.next_offset + 4)


def test_a_decision_written_again_changes_nothing() -> None:
    state = folded([variant("a", "one"), settled("a")], first_pool(RULES, "a", "b"))
    after, decision = closed(state, 1, RULES)
    twice = folded([opened(1, RULES), *decision.events(), *decision.events()], state)
    halves = folded([opened(1, RULES), *decision.events()[:1], *decision.events()], state)
    assert len(decision.injected) == 1
    for again in (twice, halves):
        assert replace(again, next_offset=0, materialized_offset=0) == replace(
            after, next_offset=0, materialized_offset=0
        )


def test_candidates_leave_the_queue_when_injected_or_refused_and_wait_otherwise() -> None:
    waits, later = variant("b", "two", rank=1), variant("b", "later", step=5)
    events = [variant("a", "one"), settled("a"), waits, variant("b", "a", rank=1), settled("b"), later]
    state = folded(events, first_pool(RULES, "a", "b"))
    state, decision = closed(state, 1, RULES, last_seed_step=4)
    assert set(state.candidates) == {waits.definition.task, later.definition.task}
    assert decision.materialized.queue == (waits.definition.task,)


def test_requests_carry_the_offset_behind_the_newest_pool() -> None:
    state = first_pool(RULES, "a", "b")
    assert state.materialized_offset == state.next_offset
    assert folded([variant("a", "one")], state).materialized_offset == state.next_offset


def test_an_operators_newest_order_for_a_task_counts() -> None:
    state = folded(
        [ordered("a", Decision.PIN, "1"), ordered("a", Decision.BAN, "2"), ordered("b", Decision.RETIRE, "3")]
    )
    assert [sorted(tasks) for tasks in (state.pinned, state.banned, state.dismissed)] == [[], ["a"], ["b"]]
    state = folded([ordered("a", Decision.PIN, "4")], state)
    assert [sorted(tasks) for tasks in (state.pinned, state.banned)] == [["a"], []]


def test_an_order_delivered_again_and_one_that_is_none_change_nothing() -> None:
    state = folded([ordered("a", Decision.PIN, "1"), ordered("a", Decision.BAN, "2")])
    again = folded([ordered("a", Decision.PIN, "1"), ordered("a", "promote", "5")], state)
    assert again == replace(state, next_offset=4)


def test_a_dismissed_task_may_come_back_once_it_has_left() -> None:
    state = folded([ordered("a", Decision.RETIRE)], first_pool(RULES, "a", "b"))
    state, _ = closed(state, 1, RULES)
    assert "a" in state.retired and not state.dismissed


def history() -> list[object]:
    """A log with everything in it."""
    chosen = rules(inject_share="0.5", protect_originals=False)
    names = ("a", "b", "c", "d")
    events: list[object] = [started(1), *map(registered, names), registered("h", "heldout")]
    state = folded(events)
    for epoch in range(3):
        groups = [group(name, 20 if name == "a" else 9, high=name == "a") for name in sorted(state.members)] * (
            epoch > 0
        )
        made = [variant("b", f"one-{epoch}", epoch + 1, epoch + 1), variant("c", f"two-{epoch}", epoch + 1, epoch + 1)]
        before = folded(events)
        _, decision = closed(before, epoch, chosen, *groups)
        events += [opened(epoch, chosen), *decision.events(), *made]
        events += [settled("b", epoch + 1, epoch + 1), settled("c", epoch + 1, epoch + 1)]
        state = folded(events)
    return [*events, ordered("b", Decision.PIN), ordered("c", Decision.BAN, "d2")]


HISTORY = history()


def test_the_history_has_every_kind_of_decision() -> None:
    kinds = {type(event).__name__ for event in HISTORY}
    assert kinds >= {"TaskInjected", "TaskRetired", "PoolMaterialized", "OperatorDecided", "SeedSettled"}


@given(st.integers(0, len(HISTORY)))
def test_replay_in_pieces_is_replay_at_once(cut: int) -> None:
    assert folded(HISTORY[cut:], folded(HISTORY[:cut])) == folded(HISTORY)


@given(st.lists(st.integers(0, len(HISTORY) - 1), max_size=8))
def test_duplicated_events_change_nothing(places: list[int]) -> None:
    events = list(HISTORY)
    for place in sorted(places, reverse=True):
        events.insert(place, HISTORY[place])
    once, again = folded(HISTORY), folded(events)
    assert without_offsets(again) == without_offsets(once)


@given(st.lists(st.integers(0, len(HISTORY)), max_size=4), st.data())
def test_facts_delivered_again_later_change_nothing(places: list[int], data: st.DataObject) -> None:
    events = list(HISTORY)
    for place in sorted(places, reverse=True):
        source = data.draw(st.integers(0, max(0, place - 1)))
        if type(HISTORY[source]).__name__ != "LearnerStarted":
            events.insert(place, HISTORY[source])
    assert without_offsets(folded(events)) == without_offsets(folded(HISTORY))


def without_offsets(state: PoolState) -> PoolState:
    return replace(state, next_offset=0, materialized_offset=0)
