"""The producers' way to the broker: consumers, acknowledged writes, and a follower that folds one partition.

Writes name their partition explicitly and wait for `acks=all`. Idempotent producers are not used, since the embedded
broker has none; one batch in flight per partition keeps the order of writes.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from eventlog.connection import Broker, client_options
from producers.errors import LogTruncatedError
from producers.standstill import Standstill
from schemas.codec import MAX_EVENT_BYTES, decode, encode
from schemas.envelope import Producer, stamp
from schemas.errors import UndecodableError
from schemas.pool import EventRefused
from schemas.topics import Topic

logger = logging.getLogger(__name__)

REQUEST_BYTES = MAX_EVENT_BYTES + 64 * 1024
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_MS = 1_000
REBALANCE_TIMEOUT_MS = 10_000
MAX_POLL_INTERVAL_MS = 3_600_000
FETCH_WAIT_MS = 50  # the embedded broker wakes no waiting fetch, so that this is the delay of a hop
REFUSED_BYTES = 64 * 1024
_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One encoded event on its way to a partition."""

    topic: str
    partition: int
    key: bytes
    value: bytes


def plain_consumer(broker: Broker) -> AIOKafkaConsumer:
    """A consumer without a group, for partitions assigned by hand."""
    return AIOKafkaConsumer(
        **client_options(broker),
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_partition_fetch_bytes=REQUEST_BYTES,
        fetch_max_wait_ms=FETCH_WAIT_MS,
    )


def group_consumer(broker: Broker, group: str) -> AIOKafkaConsumer:
    """A member of a consumer group that commits explicitly; nothing it does between polls costs it its membership."""
    return AIOKafkaConsumer(
        **client_options(broker),
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
        max_partition_fetch_bytes=REQUEST_BYTES,
        fetch_max_wait_ms=FETCH_WAIT_MS,
    )


@asynccontextmanager
async def open_producer(broker: Broker) -> AsyncIterator[AIOKafkaProducer]:
    """A producer that waits for all replicas and takes events of up to 8 MiB."""
    producer = AIOKafkaProducer(
        **client_options(broker),
        acks="all",
        linger_ms=2,
        max_batch_size=256 * 1024,
        max_request_size=REQUEST_BYTES,
        request_timeout_ms=30_000,
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def publish(producer: AIOKafkaProducer, events: Sequence[Outgoing]) -> None:
    """Writes events in order and returns when every one is acknowledged."""
    acks = [
        await producer.send(event.topic, value=event.value, key=event.key, partition=event.partition)
        for event in events
    ]
    if acks:
        await asyncio.gather(*acks)


def refusal(record: Any, reason: str, run_id: str) -> EventRefused:
    """What the dead letters keep of a record that a worker refused. It happened when the record was written."""
    value = record.value or b""
    event = EventRefused(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        sha256=hashlib.sha256(value).hexdigest(),
        value=value[:REFUSED_BYTES],
        reason=reason,
    )
    return stamp(event, run_id=run_id, occurred_at=max(record.timestamp, 0) * 1000, producer=Producer.READER)


async def refuse(producer: AIOKafkaProducer, prefix: str, record: Any, reason: str, run_id: str) -> None:
    """Keeps a record that a worker cannot take in the dead letters."""
    event = encode(refusal(record, reason, run_id))
    await publish(producer, [Outgoing(Topic.DEAD_LETTERS.named(prefix), 0, record.topic.encode(), event)])


class PartitionFollower:
    """Folds one partition from its beginning with `apply(offset, event)`, in order, and says how far it has got.

    Undecodable bytes are skipped. An unknown fingerprint or a standstill ends the follower, and whoever uses it.
    """

    def __init__(self, broker: Broker, topic: str, partition: int, apply: Callable[[int, Any], None]) -> None:
        self._broker = broker
        self._at = TopicPartition(topic, partition)
        self._apply = apply
        self._next_offset = 0
        self._advanced = asyncio.Condition()
        self._consumer: AIOKafkaConsumer | None = None

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follows the partition for the time of the block; its failure ends the block."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._follow(), name=f"follow {self._at.topic}")
            try:
                yield
            finally:
                task.cancel()

    async def reached(self, offset: int) -> None:
        """Waits until everything before `offset` is folded, however long the log takes to get there."""
        async with self._advanced:
            await self._advanced.wait_for(lambda: self._next_offset >= offset)

    async def changed(self) -> None:
        """Waits for the next events to be folded."""
        async with self._advanced:
            await self._advanced.wait()

    async def caught_up(self) -> None:
        """Waits until everything that the log holds at the time of the call is folded.

        The embedded broker gives the end as one past the first record of the last batch. That is enough here, since a
        batch is fetched and folded whole before `reached` is told.
        """
        async with self._advanced:
            await self._advanced.wait_for(lambda: self._consumer is not None)
        assert self._consumer is not None
        await self.reached((await self._consumer.end_offsets([self._at]))[self._at])

    async def _follow(self) -> None:
        consumer = plain_consumer(self._broker)
        standstill = Standstill(lambda: plain_consumer(self._broker))
        consumer.assign([self._at])
        await consumer.start()
        try:
            await self._seek_to_beginning(consumer)
            await self._started(consumer)
            while True:
                records = (await consumer.getmany(self._at, timeout_ms=_POLL_MS)).get(self._at, ())
                for record in records:
                    self._fold(record)
                await self._advance(await consumer.position(self._at))
                await standstill.polled(consumer, moved=bool(records))
        finally:
            await consumer.stop()

    async def _seek_to_beginning(self, consumer: AIOKafkaConsumer) -> None:
        begins = (await consumer.beginning_offsets([self._at]))[self._at]
        if begins > 0:
            raise LogTruncatedError(self._at.topic, self._at.partition, begins)
        consumer.seek(self._at, 0)

    async def _started(self, consumer: AIOKafkaConsumer) -> None:
        async with self._advanced:
            self._consumer = consumer
            self._advanced.notify_all()

    def _fold(self, record: Any) -> None:
        event = readable(record)
        if event is not None:
            self._apply(record.offset, event)

    async def _advance(self, next_offset: int) -> None:
        if next_offset == self._next_offset:
            return
        async with self._advanced:
            self._next_offset = next_offset
            self._advanced.notify_all()


def readable(record: Any) -> Any | None:
    """The event in a record, or None for bytes that are none. Raises UnknownFingerprintError."""
    try:
        return decode(record.value or b"")
    except UndecodableError as error:
        logger.warning("%s/%d@%d is skipped: %s", record.topic, record.partition, record.offset, error)
        return None
