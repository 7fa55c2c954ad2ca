import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from eventlog.errors import BlockedLoopError, StandstillError
from eventlog.standstill import Place, PositionWatchdog, Progress, Standstill, loop_watched

HERE: Place = ("rods.rollouts", 0)
THERE: Place = ("rods.rollouts", 1)


class Ended(list[Exception]):
    """What the process would have ended with."""

    def __call__(self, error: Exception) -> None:
        self.append(error)


async def test_a_loop_that_turns_ends_nothing() -> None:
    ended = Ended()
    with loop_watched(ended, seconds=60.0, tick=0.02):
        await asyncio.sleep(0.1)
        time.sleep(0.1)
        await asyncio.sleep(0.1)
    assert not ended


async def test_a_blocked_loop_ends_the_process() -> None:
    ended = Ended()
    with loop_watched(ended, seconds=0.3, tick=0.02):
        while not ended:
            time.sleep(0.02)
    assert [type(error) for error in ended] == [BlockedLoopError]


async def asked(end: int, *, seconds: float = 0.0, moved: bool = False, polls: int = 2) -> int:
    """How often a client at offset 5 asks where the log ends."""
    questions = 0

    async def ends(_: Mapping[Place, int]) -> Mapping[Place, int]:
        nonlocal questions
        questions += 1
        return {HERE: end}

    async def positions() -> Mapping[Place, int]:
        return {HERE: 5}

    standstill = Standstill(ends, seconds)
    for _ in range(polls):
        await asyncio.sleep(0.01)
        await standstill.polled(positions, moved=moved)
    return questions


async def test_a_record_written_a_moment_ago_is_no_standstill_yet() -> None:
    assert await asked(6, polls=1) == 1


async def test_a_record_at_the_position_that_does_not_arrive_is_a_standstill() -> None:
    with pytest.raises(StandstillError, match=r"rods\.rollouts/0 did not move for 0 s though the log has more"):
        await asked(6)


async def test_a_log_without_more_is_none() -> None:
    assert await asked(5) == 2


@pytest.mark.parametrize("changes", [{"seconds": 60.0}, {"moved": True}])
async def test_nobody_is_asked_before_the_time_or_while_records_come(changes: Any) -> None:
    assert await asked(6, **changes) == 0


def test_a_position_that_stands_before_the_end_is_stuck_after_a_while() -> None:
    progress = Progress(10.0)
    assert progress.stuck(0.0, {HERE: 5}, {HERE: 9}) is None
    assert progress.stuck(9.0, {HERE: 5}, {HERE: 12}) is None
    assert progress.stuck(11.0, {HERE: 5}, {HERE: 12}) == HERE


def test_a_position_at_the_end_is_never_stuck() -> None:
    progress = Progress(10.0)
    assert all(progress.stuck(float(now), {HERE: 5}, {HERE: 5}) is None for now in range(0, 100, 5))
    assert progress.stuck(101.0, {HERE: 5}, {HERE: 6}) is None
    assert progress.stuck(106.0, {HERE: 5}, {HERE: 6}) is None


def test_a_position_that_moves_slowly_is_not_stuck() -> None:
    progress = Progress(10.0)
    assert all(progress.stuck(float(now), {HERE: now}, {HERE: 1000}) is None for now in range(0, 100, 9))


def test_a_place_that_was_lost_and_came_back_starts_anew() -> None:
    progress = Progress(10.0)
    progress.stuck(0.0, {HERE: 5}, {HERE: 9})
    progress.stuck(5.0, {THERE: 1}, {THERE: 1})
    assert progress.stuck(11.0, {HERE: 5}, {HERE: 9}) is None


async def watched(
    positions: Mapping[Place, int] | None, ends: Mapping[Place, int] | None, seconds: float = 0.5
) -> Ended:
    """What these positions and ends come to within `seconds`. ends: None for a broker that does not answer."""
    ended = Ended()

    async def ask(_: Mapping[Place, int]) -> Mapping[Place, int]:
        if ends is None:
            raise ConnectionError
        return ends

    watching = asyncio.create_task(PositionWatchdog(0.04, lambda: positions, ask, ended).watch())
    for _ in range(int(seconds / 0.1)):
        await asyncio.sleep(0.1)
        if ended:
            break
    assert not watching.done()
    watching.cancel()
    return ended


async def test_a_consumer_that_stands_still_ends_the_process() -> None:
    ended = await watched({HERE: 1}, {HERE: 2}, seconds=30)
    assert ended and isinstance(ended[0], StandstillError) and "rods.rollouts/0" in str(ended[0])


async def test_a_rebalance_without_end_ends_the_process() -> None:
    assert isinstance((await watched(None, {}, seconds=30))[0], StandstillError)


@pytest.mark.parametrize(("positions", "ends"), [({HERE: 2}, {HERE: 2}), ({}, {}), ({HERE: 1}, None)])
async def test_at_the_end_or_without_partitions_or_an_answer_nothing_ends(
    positions: Mapping[Place, int], ends: Mapping[Place, int] | None
) -> None:
    assert not await watched(positions, ends)


async def test_the_time_for_which_a_broker_does_not_answer_does_not_count() -> None:
    ended, answers = Ended(), [{HERE: 2}, None, {HERE: 2}, {HERE: 2}, {HERE: 2}]

    async def ask(_: Mapping[Place, int]) -> Mapping[Place, int]:
        answer = answers.pop(0)
        if answer is None:
            raise ConnectionError
        return answer

    watchdog = PositionWatchdog(30.0, lambda: {HERE: 1}, ask, ended)
    for now in (0.0, 25.0, 50.0, 75.0):
        await watchdog._compare({HERE: 1}, lambda now=now: now)  # type: ignore[misc]
    assert not ended
    await watchdog._compare({HERE: 1}, lambda: 81.0)
    assert isinstance(ended[0], StandstillError)
