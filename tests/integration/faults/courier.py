"""Carries honest results from the topic aside to `rods.rollouts`: most at once, some only behind their barrier."""

from collections import defaultdict

from aiokafka import AIOKafkaProducer

from eventlog.client import log_producer
from eventlog.reader import LogRecord, LogTail
from eventlog.writer import send
from schemas.codec import decode
from schemas.rollouts import BarrierReached, RolloutFinished
from schemas.topics import Topic
from tests.integration.faults.aside import aside
from tests.integration.faults.schedule import Schedule


class Courier:
    """Holds back the first group of each partition in each step that the plan names."""

    def __init__(self, address: str, prefix: str, partitions: int, plan: Schedule) -> None:
        self._address, self._plan = address, plan
        self._aside, self._name = aside(prefix), Topic.ROLLOUTS.named(prefix)
        self._starts = {(name, number): 0 for name in (self._aside, self._name) for number in range(partitions)}
        self._chosen: dict[tuple[int, int], str] = {}
        self._waiting: dict[tuple[int, int], list[LogRecord]] = defaultdict(list)
        self._closed: set[tuple[int, int]] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async with log_producer(self._address) as producer, LogTail(self._address, self._starts) as tail:
            while True:
                for record in await tail.poll(0.05):
                    if record.topic == self._aside:
                        await self._take(producer, record)
                    else:
                        await self._see(producer, record)

    async def _take(self, producer: AIOKafkaProducer, record: LogRecord) -> None:
        event = decode(record.value or b"")
        assert isinstance(event, RolloutFinished)
        place = (event.step, record.partition)
        held = event.step in self._plan.held and self._chosen.setdefault(place, event.group) == event.group
        if held and place not in self._closed:
            self._waiting[place].append(record)
        else:
            await self._carry(producer, record)

    async def _see(self, producer: AIOKafkaProducer, record: LogRecord) -> None:
        event = decode(record.value or b"")
        if isinstance(event, BarrierReached):
            place = (event.step, record.partition)
            self._closed.add(place)
            for late in self._waiting.pop(place, []):
                await self._carry(producer, late)

    async def _carry(self, producer: AIOKafkaProducer, record: LogRecord) -> None:
        await send(producer, self._name, record.partition, "carried", record.value or b"")
