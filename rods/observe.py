"""What a person watching a run sees: a tail of the topics, folded into the run's summary.

An observer decides nothing and never stops the pipeline; bytes that it cannot read it passes over.
"""

import asyncio
import logging
from collections.abc import Callable

from rods.summary import RunSummary
from schemas.codec import decode
from schemas.errors import SchemaError
from schemas.topics import Topic
from streams.log_reader import LogRecord, LogTail, Place

logger = logging.getLogger(__name__)

TOPICS = (Topic.EPOCHS, Topic.SEALS, Topic.SYNTHESIS, Topic.POOL)


class Observer:
    """Follows a run. `changed` is called after each batch that was folded."""

    def __init__(self, broker: str, prefix: str, partitions: int, changed: Callable[[], None]) -> None:
        self.summary = RunSummary()
        self._broker = broker
        self._starts: dict[Place, int | None] = {
            (topic.named(prefix), number): 0 for topic in TOPICS for number in range(partitions if topic.by_task else 1)
        }
        self._changed = changed
        self._finish = asyncio.Event()

    def finish(self) -> None:
        """Makes `follow` return once it has read up to the present ends."""
        self._finish.set()

    async def follow(self) -> None:
        """Folds until `finish`."""
        async with LogTail(self._broker, self._starts) as tail:
            while not self._finish.is_set():
                self._fold(await tail.poll(0.2))
            async for batch in tail.until(await tail.ends()):
                self._fold(batch)

    def _fold(self, batch: list[LogRecord]) -> None:
        for record in batch:
            try:
                self.summary.evolve(decode(record.value or b""))
            except SchemaError as error:
                logger.warning("%s/%d at %d: %s", record.topic, record.partition, record.offset, error)
        if batch:
            self._changed()
