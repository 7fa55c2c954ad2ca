"""What a person watching a run sees: a tail of the topics, folded into the run's summary.

An observer decides nothing and never stops the pipeline; bytes that it cannot read it passes over.
"""

import asyncio
import logging

from eventlog.connection import Broker
from eventlog.reader import LogRecord, LogTail
from eventlog.standstill import Place
from rods.reports.summary import SummaryFold
from schemas.codec import decode
from schemas.errors import SchemaError
from schemas.topics import Topic

logger = logging.getLogger(__name__)

TOPICS = (Topic.EPOCHS, Topic.MEASUREMENTS, Topic.SEALS, Topic.SYNTHESIS, Topic.POOL)


class Observer:
    """Follows a run; `fold` is what it knows so far."""

    def __init__(self, broker: Broker, prefix: str, partitions: int) -> None:
        self.fold = SummaryFold()
        self._broker = broker
        self._starts: dict[Place, int | None] = {
            (topic.named(prefix), number): 0 for topic in TOPICS for number in range(partitions if topic.by_task else 1)
        }
        self._topics = {topic.named(prefix): topic for topic in TOPICS}
        self._finish = asyncio.Event()

    def finish(self) -> None:
        """Makes `follow` return once it has read up to the present ends."""
        self._finish.set()

    async def follow(self) -> None:
        """Folds until `finish`."""
        async with LogTail(self._broker, self._starts) as tail:
            while not self._finish.is_set():
                self._take(await tail.poll(0.2))
            async for batch in tail.until(await tail.ends()):
                self._take(batch)

    def _take(self, batch: list[LogRecord]) -> None:
        for record in batch:
            try:
                event = decode(record.value or b"")
            except SchemaError as error:
                logger.warning("%s/%d at %d: %s", record.topic, record.partition, record.offset, error)
                continue
            if self._topics[record.topic].carries(event.KIND):
                self.fold.evolve(event)
