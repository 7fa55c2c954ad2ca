from typing import Any

from eventlog.offsets import TakenOffsets
from producers.rollouts.backlog import Backlog
from schemas.epochs import LearnerStarted
from schemas.rollouts import GroupRequested


def asked(group: str, **changes: Any) -> GroupRequested:
    values: dict[str, Any] = {
        "generation": 1,
        "epoch": 1,
        "step": 1,
        "task": "t",
        "group": group,
        "purpose": "train",
        "k": 2,
        "turns_total": 3,
        "category": "base",
        "policy_version": 0,
        "temperature": 1.0,
        "seed": 1,
        "deadline": 0,
        "pool_offset": 1,
    }
    return GroupRequested(**(values | changes))


def filled(*events: object, partition: int = 0) -> tuple[Backlog, TakenOffsets]:
    offsets = TakenOffsets()
    backlog = Backlog(offsets)
    for offset, event in enumerate(events):
        backlog.read(partition, offset, event)
    return backlog, offsets


def names(backlog: Backlog, limit: int = 99) -> list[str]:
    return [assigned.request.group for assigned in backlog.batch(limit)]


def test_groups_come_oldest_first_and_up_to_the_limit() -> None:
    backlog, _ = filled(asked("a"), asked("b"), asked("c"))
    assert names(backlog, 2) == ["a", "b"]
    assert names(backlog, 2) == ["c"]
    assert names(backlog) == []


def test_nothing_is_committed_before_it_is_done() -> None:
    backlog, offsets = filled(asked("a"), asked("b"))
    first, second = backlog.batch(2)
    assert offsets.commits() == {0: 0}
    backlog.done(second)
    assert offsets.commits() == {0: 0}
    backlog.done(first)
    assert offsets.commits() == {0: 2}


def test_an_older_generation_than_the_newest_seen_is_ignored_even_where_it_waits() -> None:
    backlog, offsets = filled(asked("before"), LearnerStarted(2, "n"), asked("zombie"), asked("new", generation=2))
    assert names(backlog) == ["new"]
    assert offsets.commits() == {0: 3}


def test_a_request_is_skipped_once_its_partition_shows_a_step_more_than_one_later() -> None:
    backlog, _ = filled(asked("one"), asked("two", step=2), asked("three", step=3))
    assert names(backlog) == ["two", "three"]


def test_a_later_step_of_another_partition_skips_nothing() -> None:
    backlog, _ = filled(asked("one"))
    backlog.read(1, 0, asked("far", step=9))
    assert names(backlog) == ["one", "far"]


def test_an_evaluation_is_never_too_late() -> None:
    backlog, _ = filled(asked("one", purpose="evaluate"), asked("nine", step=9))
    assert names(backlog) == ["one", "nine"]


def test_a_group_asked_for_twice_is_not_run_twice_in_one_batch() -> None:
    backlog, _ = filled(asked("a"), asked("a"))
    assert names(backlog) == ["a"]
    assert names(backlog) == ["a"]


def test_what_waits_on_a_lost_partition_is_dropped() -> None:
    backlog, offsets = filled(asked("a"))
    backlog.read(1, 0, asked("b"))
    offsets.keep([1])
    assert names(backlog) == ["b"]


def test_a_record_without_an_event_and_a_group_without_attempts_are_done_at_once() -> None:
    backlog, offsets = filled(None, asked("empty", k=0))
    assert names(backlog) == []
    assert offsets.commits() == {0: 2}
