import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from eventlog.client import log_producer
from eventlog.errors import LogError
from eventlog.writer import send
from learner.errors import SupersededError
from learner.log import LearnerLog, Write
from rods.brokers.embedded import create_topics
from schemas.epochs import LearnerStarted, PolicyPublished
from schemas.rollouts import TrajectoryRecorded
from schemas.topics import Topic

N = 2


@asynccontextmanager
async def started(broker: str, prefix: str) -> AsyncIterator[tuple[LearnerLog, list[tuple[int, int, Any]]]]:
    """A log that follows `rods.epochs`, and what it has folded."""
    await create_topics(broker, prefix, N)
    log, folded = LearnerLog(broker, prefix, N, "run", lambda: 7), []
    await log.start({Topic.EPOCHS: lambda *record: folded.append(record)})
    try:
        yield log, folded
    finally:
        await log.stop()


def published(version: int) -> Write:
    return Write(Topic.EPOCHS, 0, "run", PolicyPublished(1, version, "", ""))


def trajectory(attempt: int) -> TrajectoryRecorded:
    return TrajectoryRecorded("g", "e", attempt, 1, 1, "t", 0, (1,), (0.0,), b"\x01", "[]")


async def test_what_is_written_is_stamped_and_folded_at_the_offset_given_back(broker: str) -> None:
    async with started(broker, "stamp.") as (log, folded):
        offsets = await log.write([published(0), published(1)])
        assert await log.wait_until(lambda: len(folded) == 2)
    assert offsets == [0, 1] == [offset for _, offset, _ in folded]
    envelope = folded[0][2].envelope
    assert (envelope.run_id, envelope.occurred_at, envelope.producer) == ("run", 7, "learner")


async def test_a_log_that_starts_later_has_folded_what_was_there(broker: str) -> None:
    async with started(broker, "later.") as (log, _):
        await log.write(map(published, range(50)))
        async with started(broker, "later.") as (_, folded):
            assert [event.version for _, _, event in folded] == list(range(50))


async def test_bytes_that_are_no_event_are_passed_on_as_none(broker: str) -> None:
    async with started(broker, "noise.") as (log, folded), log_producer(broker) as producer:
        await send(producer, "noise.epochs", 0, "run", b"noise")
        await log.write([published(1)])
        assert await log.wait_until(lambda: len(folded) == 2)
    assert folded[0] == (0, 0, None)


async def test_an_event_that_the_topic_does_not_carry_is_passed_on_as_none(broker: str) -> None:
    async with started(broker, "foreign.") as (log, folded):
        await log.write([Write(Topic.EPOCHS, 0, "run", trajectory(0)), published(1)])
        assert await log.wait_until(lambda: len(folded) == 2)
    assert folded[0] == (0, 0, None)


async def test_a_wait_ends_when_its_time_runs_out(broker: str) -> None:
    async with started(broker, "wait.") as (log, _):
        assert not await log.wait_until(lambda: False, 0.05)
        assert await log.wait_until(lambda: True, 0.0)


async def test_a_learner_that_is_superseded_neither_writes_nor_waits(broker: str) -> None:
    def guard() -> None:
        if len(folded) > 1:
            raise SupersededError(1)

    async with started(broker, "guard.") as (log, folded):
        log.guard = guard
        waiting = asyncio.create_task(log.wait_until(lambda: False))
        await log.write([published(0), published(1)])
        with pytest.raises(SupersededError):
            await waiting
        with pytest.raises(SupersededError):
            await log.write([published(2)])


async def test_a_fold_that_fails_ends_the_waits(broker: str) -> None:
    def fold(_: int, __: int, event: Any) -> None:
        raise LogError(f"cannot fold {event.version}")

    await create_topics(broker, "fail.", N)
    log = LearnerLog(broker, "fail.", N, "run", lambda: 7)
    await log.start({Topic.EPOCHS: fold})
    waiting = asyncio.create_task(log.wait_until(lambda: False))
    await log.write([published(3)])
    with pytest.raises(LogError, match="cannot fold 3"):
        await waiting
    await log.stop()


async def test_a_log_whose_first_fold_fails_does_not_start(broker: str) -> None:
    async with started(broker, "start.") as (log, _):
        await log.write([published(3)])
    other = LearnerLog(broker, "start.", N, "run", lambda: 7)

    def fold(_: int, __: int, event: Any) -> None:
        raise LogError("no")

    with pytest.raises(LogError):
        await other.start({Topic.EPOCHS: fold})
    await other.stop()


async def test_reading_up_waits_for_all_that_a_topic_holds(broker: str) -> None:
    found: list[int] = []
    async with started(broker, "up.") as (log, _):
        await log.write(Write(Topic.TRAJECTORIES, n % N, "t", trajectory(n)) for n in range(40))
        log.follow(Topic.TRAJECTORIES, lambda _, __, event: found.append(event.attempt))
        await log.read_up(Topic.TRAJECTORIES)
        assert sorted(found) == list(range(40))
        await log.write([Write(Topic.TRAJECTORIES, 1, "t", trajectory(99))])
        await log.read_up(Topic.TRAJECTORIES)
        assert found[-1] == 99


async def test_reading_up_an_empty_topic_returns(broker: str) -> None:
    async with started(broker, "empty.") as (log, _):
        log.follow(Topic.TRAJECTORIES, lambda *_: None)
        await log.read_up(Topic.TRAJECTORIES)


async def test_what_stands_behind_given_offsets_is_read_anew(broker: str) -> None:
    async with started(broker, "anew.") as (log, _):
        await log.write([Write(Topic.POOL, 0, "run", LearnerStarted(number, "n")) for number in (1, 2, 3)])
        events = await log.read_from({("anew.pool", 0): 1})
    assert [event.generation for event in events] == [2, 3]
