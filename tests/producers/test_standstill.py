import asyncio
import time
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError

from producers.errors import StandstillError
from producers.standstill import Standstill, beating

HERE = TopicPartition("rods.pool", 0)


class Consumer:
    """Stands at offset 5; `found` is what a poll brings, an error what it raises."""

    def __init__(self, found: Any = None) -> None:
        self.found = found
        self.sought: dict[TopicPartition, int] = {}
        self.stopped = False

    def assignment(self) -> set[TopicPartition]:
        return {HERE}

    async def position(self, _: TopicPartition) -> int:
        return 5

    def assign(self, _: Any) -> None:
        pass

    async def start(self) -> None:
        pass

    def seek(self, at: TopicPartition, offset: int) -> None:
        self.sought[at] = offset

    async def getmany(self, **_: int) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found or {}

    async def stop(self) -> None:
        self.stopped = True


async def stood_still(probe: Consumer, *, seconds: float = 0.0, moved: bool = False, polls: int = 2) -> None:
    standstill = Standstill(lambda: probe, seconds)
    for _ in range(polls):
        await asyncio.sleep(0.01)
        await standstill.polled(Consumer(), moved=moved)


async def test_a_record_written_a_moment_ago_is_no_standstill_yet() -> None:
    probe = Consumer({HERE: ["record"]})
    await stood_still(probe, polls=1)
    assert probe.sought == {HERE: 5}


async def test_a_record_at_the_position_that_does_not_arrive_is_a_standstill() -> None:
    probe = Consumer({HERE: ["record"]})
    with pytest.raises(StandstillError, match=r"no record of rods\.pool/0 came for 0 s though the log has more"):
        await stood_still(probe)
    assert probe.sought == {HERE: 5} and probe.stopped


async def test_a_log_without_more_is_none() -> None:
    await stood_still(Consumer())


async def test_a_broker_that_does_not_answer_proves_nothing() -> None:
    probe = Consumer(KafkaConnectionError("gone"))
    await stood_still(probe)
    assert probe.stopped


@pytest.mark.parametrize("changes", [{"seconds": 60.0}, {"moved": True}])
async def test_nobody_is_asked_before_the_time_or_while_records_come(changes: Any) -> None:
    probe = Consumer({HERE: ["record"]})
    await stood_still(probe, **changes)
    assert not probe.sought


async def test_a_loop_that_turns_ends_nothing() -> None:
    ended: list[bool] = []
    with beating(lambda: ended.append(True), seconds=60.0, tick=0.02):
        await asyncio.sleep(0.1)
        time.sleep(0.1)
        await asyncio.sleep(0.1)
    assert not ended


async def test_a_blocked_loop_ends_the_process() -> None:
    ended: list[bool] = []
    with beating(lambda: ended.append(True), seconds=0.3, tick=0.02):
        while not ended:
            time.sleep(0.02)
    assert ended == [True]
