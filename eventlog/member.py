"""A worker's place in a consumer group: joins, commits what is done, and leaves."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from eventlog.client import group_consumer
from eventlog.connection import Broker
from eventlog.offsets import TakenOffsets
from eventlog.reader import ends_if_answered
from eventlog.standstill import Place, Standstill

logger = logging.getLogger(__name__)

COMMIT_SECONDS = 0.2
_POLL_MS = 500
_LEAVE_SECONDS = 2.0


class GroupMember(ConsumerRebalanceListener):  # type: ignore[misc]
    """Explicit offsets are committed, for partitions that are still its own. Leaving commits nothing more."""

    def __init__(self, broker: Broker, group: str, topic: str, offsets: TakenOffsets) -> None:
        self.consumer: AIOKafkaConsumer = group_consumer(broker, group)
        self._topic = topic
        self._offsets = offsets
        self._committing = asyncio.Lock()
        self._standstill = Standstill(partial(ends_if_answered, broker))

    async def __aenter__(self) -> "GroupMember":
        self.consumer.subscribe([self._topic], listener=self)
        await self.consumer.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        with suppress(TimeoutError, KafkaError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self.consumer.stop()

    async def poll(self, max_records: int) -> dict[TopicPartition, list[Any]]:
        """The next records, possibly none after a moment. Raises StandstillError."""
        polled: dict[TopicPartition, list[Any]] = await self.consumer.getmany(
            timeout_ms=_POLL_MS, max_records=max_records
        )
        await self._standstill.polled(self._positions, moved=bool(polled))
        return polled

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Commits before the partitions go."""
        del revoked
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self.commit()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """The protocol is eager: what is not among these is lost."""
        partitions = sorted(at.partition for at in assigned)
        logger.info("holds partitions %s of %s", partitions, self._topic)
        self._offsets.keep(partitions)

    async def commit(self) -> None:
        """Commits what is done. A commit that fails is tried again with the next."""
        async with self._committing:
            held = {at.partition for at in self.consumer.assignment()}
            offsets = {number: offset for number, offset in self._offsets.commits().items() if number in held}
            if not offsets:
                return
            try:
                await self.consumer.commit({TopicPartition(self._topic, n): offset for n, offset in offsets.items()})
            except KafkaError as error:
                logger.warning("a commit on %s failed and will be repeated: %s", self._topic, error)
            else:
                self._offsets.committed(offsets)

    async def commit_regularly(self) -> None:
        """Commits a few times a second, until cancelled."""
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            await self.commit()

    async def _positions(self) -> dict[Place, int]:
        held = self.consumer.assignment()
        return {(at.topic, at.partition): await self.consumer.position(at) for at in held}
