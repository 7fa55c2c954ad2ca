"""The learner's side of the broker: one producer, tails that feed the views, and waits on them.

Every write goes to an explicit partition and is acknowledged by all replicas before the call returns. The views fold
what the tails bring, and `wait_until` wakes on each change.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaProducer

from eventlog.client import log_producer
from eventlog.connection import Broker
from eventlog.reader import LogRecord, LogTail, end_offsets, readable
from eventlog.standstill import Place
from eventlog.writer import Outgoing, write
from schemas.codec import encode
from schemas.envelope import Producer, stamp
from schemas.topics import Topic

logger = logging.getLogger(__name__)

Fold = Callable[[int, int, Any], None]
"""partition, offset, event; None for bytes that are no event, and for an event that the topic does not carry."""


@dataclass(frozen=True, slots=True)
class Write:
    """An event on its way: where to, and under which key."""

    topic: Topic
    partition: int
    key: str
    event: Any


class LearnerLog:
    """Owns the connections. `run_id` and `clock` (microseconds) stamp what is written.

    `guard` is asked before every write and on every change; it raises when this learner must stop.
    """

    def __init__(self, broker: Broker, prefix: str, partitions: int, run_id: str, clock: Callable[[], int]) -> None:
        self.broker, self.prefix, self.partitions = broker, prefix, partitions
        self.run_id, self.clock = run_id, clock
        self.guard: Callable[[], None] = lambda: None
        self._folds: dict[str, Fold] = {}
        self._topics = {topic.named(prefix): topic for topic in Topic}
        self._changed = asyncio.Condition()
        self._producer: AIOKafkaProducer | None = None
        self._pumps: list[asyncio.Task[None]] = []
        self._folded: dict[Place, int] = {}

    async def start(self, folds: Mapping[Topic, Fold]) -> None:
        """Connects, and folds each topic from its start. Returns once the folds have reached today's end offsets."""
        self._producer = log_producer(self.broker)
        await self._producer.start()
        caught_up = asyncio.Event()
        pump = self._pump(folds, 0, caught_up)
        waiting = asyncio.create_task(caught_up.wait())
        await asyncio.wait((pump, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        self._raise_if_stopped()

    def follow(self, topic: Topic, fold: Fold) -> None:
        """Folds a topic of short retention too, from the oldest record there is, in its own time."""
        self._pump({topic: fold}, None, asyncio.Event())

    async def read_up(self, topic: Topic) -> None:
        """Waits until everything that a topic holds at this moment is folded."""
        ends = await end_offsets(self.broker, self._places(topic))
        await self.wait_until(lambda: all(self._folded.get(place, -1) >= end for place, end in ends.items()))

    async def stop(self) -> None:
        """Closes the connections."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        if self._producer is not None:
            await self._producer.stop()

    async def write(self, writes: Iterable[Write]) -> list[int]:
        """Stamps, sends, and waits for the acknowledgements. Offsets in order."""
        assert self._producer is not None
        self.guard()
        now = self.clock()
        return await write(self._producer, [self._outgoing(each, now) for each in writes])

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Waits for a view to satisfy `condition`; False where the time ran out. Raises what stopped the tail."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                while not condition():
                    self.guard()
                    self._raise_if_stopped()
                    await self._changed.wait()
        except TimeoutError:
            return condition()
        return True

    async def read_from(self, starts: Mapping[Place, int]) -> list[Any]:
        """The events from the given offsets up to the present ends, read anew. Topics by full name."""
        events: list[Any] = []
        async with LogTail(self.broker, dict(starts)) as tail:
            async for batch in tail.until(await tail.ends()):
                events += [event for record in batch if (event := readable(record)) is not None]
        return events

    def _outgoing(self, write: Write, occurred_at: int) -> Outgoing:
        event = stamp(write.event, run_id=self.run_id, occurred_at=occurred_at, producer=Producer.LEARNER)
        return Outgoing(write.topic.named(self.prefix), write.partition, write.key.encode(), encode(event))

    def _places(self, topic: Topic) -> list[Place]:
        return [(topic.named(self.prefix), partition) for partition in range(self.partitions if topic.by_task else 1)]

    def _pump(self, folds: Mapping[Topic, Fold], start: int | None, caught_up: asyncio.Event) -> "asyncio.Task[None]":
        self._folds |= {topic.named(self.prefix): fold for topic, fold in folds.items()}
        starts = {place: start for topic in folds for place in self._places(topic)}
        self._pumps.append(asyncio.create_task(self._follow(starts, caught_up), name="learner-log"))
        return self._pumps[-1]

    async def _follow(self, starts: Mapping[Place, int | None], caught_up: asyncio.Event) -> None:
        try:
            async with LogTail(self.broker, starts) as tail:
                async with self._changed:
                    self._folded |= tail.positions
                    self._changed.notify_all()
                async for batch in tail.until(await tail.ends()):
                    await self._fold(batch)
                caught_up.set()
                while True:
                    await self._fold(await tail.poll(0.5))
        finally:
            async with self._changed:
                self._changed.notify_all()

    async def _fold(self, batch: list[LogRecord]) -> None:
        if not batch:
            return
        async with self._changed:
            for record in batch:
                self._folds[record.topic](record.partition, record.offset, self._carried(record))
                self._folded[record.topic, record.partition] = record.offset + 1
            self._changed.notify_all()

    def _carried(self, record: LogRecord) -> Any:
        """The record's event. One of another topic must not stop every learner to come."""
        event = readable(record)
        if event is None or self._topics[record.topic].carries(event.KIND):
            return event
        logger.warning("%s/%d at %d: carries no %s", record.topic, record.partition, record.offset, event.KIND)
        return None

    def _raise_if_stopped(self) -> None:
        for pump in self._pumps:
            if pump.done():
                pump.result()
                raise RuntimeError("the learner's tail of the log stopped")
