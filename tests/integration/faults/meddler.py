"""Delivers results again and late, and runs groups again with other results under another execution."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from aiokafka import AIOKafkaProducer

from eventlog.client import log_producer
from eventlog.reader import LogTail
from eventlog.writer import send
from schemas.codec import decode, encode
from schemas.rollouts import RolloutFinished, Slot
from schemas.topics import Topic
from tests.integration.faults.schedule import REPEAT, RERUN, Schedule

EXECUTION = "again"


class Meddler:
    """Every result it writes stands behind the one it repeats, so that nothing it does may count.

    done: how often it has written each of them. following: whether it sees what comes.
    """

    def __init__(self, address: str, prefix: str, partitions: int, plan: Schedule) -> None:
        self._address, self._name, self._plan = address, Topic.ROLLOUTS.named(prefix), plan
        self._starts: Mapping[tuple[str, int], int] = {(self._name, number): 0 for number in range(partitions)}
        self._draw = random.Random(f"meddler-{plan.seed}")
        self._seen: set[str] = set()
        self.done: Counter[str] = Counter()
        self.following = False
        self._writes: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async with log_producer(self._address) as producer, LogTail(self._address, self._starts) as tail:
            try:
                await self._follow(producer, tail)
            finally:
                for write in self._writes:
                    write.cancel()
                await asyncio.gather(*self._writes, return_exceptions=True)

    async def _follow(self, producer: AIOKafkaProducer, tail: LogTail) -> None:
        self.following = True
        while True:
            for record in await tail.poll(0.2):
                event = decode(record.value or b"")
                if not isinstance(event, RolloutFinished) or event.group in self._seen:
                    continue
                self._seen.add(event.group)
                for again in self._meddled(event):
                    self._later(producer, record.partition, again)

    def _later(self, producer: AIOKafkaProducer, partition: int, event: RolloutFinished) -> None:
        async def delayed(seconds: float) -> None:
            await asyncio.sleep(seconds)
            await send(producer, self._name, partition, "again", encode(event))
            self.done[RERUN if event.execution == EXECUTION else REPEAT] += 1

        task = asyncio.create_task(delayed(self._draw.uniform(0.0, self._plan.delay)))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    def _meddled(self, event: RolloutFinished) -> list[RolloutFinished]:
        again = [event] if self._draw.random() < self._plan.repeats else []
        if self._draw.random() < self._plan.reruns:
            slots = tuple(_other(slot) for slot in event.slots)
            again.append(replace(event, execution=EXECUTION, slots=slots))
        return again


def _other(slot: Slot) -> Slot:
    """The opposite outcome."""
    if slot.turns_passed:
        return replace(slot, turns_passed=0, outcomes=(False,))
    return replace(slot, turns_passed=slot.turns_total, outcomes=(True,) * slot.turns_total)
