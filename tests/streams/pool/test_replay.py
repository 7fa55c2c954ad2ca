from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eventlog.reader import LogRecord
from schemas.codec import encode
from schemas.envelope import stamp
from schemas.pool import TaskInjected
from schemas.topics import Topic
from streams.pool import replay
from streams.pool.replay import ReplayedPool, replay_pools
from tests.streams.pool.build import (
    closed,
    first_pool,
    folded,
    group,
    opened,
    registered,
    rules,
    seal,
    selection,
    settled,
    variant,
)

RULES = rules(inject_share="0.5", protect_originals=False)


def recorded_run() -> tuple[list[Any], list[Any]]:
    """The pool's log of one epoch, which injects and retires, and its seals."""
    groups = [group("a", 10), group("b", 20, high=1)]
    registrations = [registered("a"), registered("b"), registered("c")]
    facts = [variant("a", "x"), settled("a")]
    start = folded(facts, first_pool(RULES, "a", "b", "c"))
    _, decision = closed(start, 1, RULES, *groups)
    _, first = closed(folded(registrations), 0, RULES)
    pool = [*registrations, opened(0, RULES), *first.events(), *facts, opened(1, RULES), *decision.events()]
    seals = [*seal(1, groups=groups, last=True, n=1), selection(1, "a", digest="digest-1")]
    return pool, seals


def replayed(monkeypatch: pytest.MonkeyPatch, pool: Iterable[Any], seals: Iterable[Any]) -> list[ReplayedPool]:
    logs = {Topic.POOL: list(pool), Topic.SEALS: list(seals)}

    def read_archive(_: Path, topic: Topic) -> Iterator[LogRecord]:
        for offset, event in enumerate(logs[topic]):
            value = event if isinstance(event, bytes) else encode(_stamped(event))
            yield LogRecord(topic.named("rods."), 0, offset, 0, b"run", value, ())

    monkeypatch.setattr(replay, "read_archive", read_archive)
    return list(replay_pools(Path("archive")))


def _stamped(event: Any) -> Any:
    return stamp(event, run_id="run", occurred_at=1, producer="learner")


def test_every_boundary_recomputed_from_the_log_agrees_with_what_it_records(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = replayed(monkeypatch, *recorded_run())
    assert (first.agrees, second.agrees) == (True, True)
    assert (second.recorded.injected, second.recorded.retired) == (1, 1)
    header = second.header()
    assert (header["epoch"], header["members"], header["originals"], header["retired"]) == (1, 3, 2, 1)
    assert [row["state"] for row in second.rows()] == ["member"] * 3
    assert "agrees with the log" in next(second.lines())


def test_bytes_that_are_no_event_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, seals = recorded_run()
    found = replayed(monkeypatch, [b"noise", *pool], [b"noise", *seals])
    assert [pool.agrees for pool in found] == [True, True]


def test_a_reward_that_is_not_the_recorded_one_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, _ = recorded_run()
    forged = [*seal(1, groups=[group("a", 10), group("b", 10)], last=True, n=1), selection(1, "a", digest="digest-1")]
    _, second = replayed(monkeypatch, pool, forged)
    assert not second.agrees
    assert "DIFFERS" in next(second.lines())


def test_a_decision_that_is_not_in_the_log_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, seals = recorded_run()
    _, second = replayed(monkeypatch, [event for event in pool if not isinstance(event, TaskInjected)], seals)
    assert second.recorded.digest == second.recomputed.digest
    assert not second.agrees


def test_a_variant_of_a_seed_that_nobody_selected_shows_where_it_was_injected(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, seals = recorded_run()
    _, second = replayed(monkeypatch, pool, [*seals[:-1], selection(1, "b", digest="digest-1")])
    assert not second.agrees
    assert (second.recorded.injected, second.recomputed.injected) == (1, 0)


def test_a_boundary_whose_selection_is_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, seals = recorded_run()
    other = [*seals[:-1], replace(seals[-1], digest="other")]
    with pytest.raises(ValueError, match="the seals of epoch 1 are not those its boundary names"):
        replayed(monkeypatch, pool, other)
