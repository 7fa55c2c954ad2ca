"""Plain reading and writing of partitions: no consumer group, explicit offsets, limits that fit the largest event.

A reader without a group keeps its own place (a manifest, a table, a fold's next offset); the broker keeps none for it.

Ends of partitions come from the high watermark of a fetch. The embedded broker answers the question made for it
(ListOffsets, latest) with one past the *first* record of the last batch: a reader that believes it stops too early.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from eventlog.connection import Broker, client_options

MAX_RECORD_BYTES = 8 * 1024 * 1024
MAX_REQUEST_BYTES = MAX_RECORD_BYTES + 64 * 1024
STUCK_SECONDS = 60.0
_BATCH = 500

Place = tuple[str, int]
"""A topic's full name and a partition number."""


class LogError(Exception):
    """The log cannot be read on from where the reader stands. One sentence."""


class LogRecord(NamedTuple):
    """A record as the log holds it. timestamp: milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class LogTail:
    """Follows partitions from given offsets. Async context manager.

    starts: the first offset wanted of each place; None: the oldest there is. Entering raises LogError where the broker
    no longer has, or does not yet have, that offset: going on would lose events or mix two logs.
    """

    def __init__(self, broker: Broker, starts: Mapping[Place, int | None]) -> None:
        self._broker = broker
        self._starts = {TopicPartition(*place): start for place, start in starts.items()}
        self._consumer = _consumer(broker, max_partition_fetch_bytes=MAX_REQUEST_BYTES)
        self._position: dict[TopicPartition, int] = {}
        self._moved_at = 0.0
        self._behind = False

    async def __aenter__(self) -> "LogTail":
        try:
            await self._consumer.start()
            await self._seek()
        except BaseException:
            await self._consumer.stop()
            raise
        self._moved_at = time.monotonic()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    @property
    def positions(self) -> dict[Place, int]:
        """The next offset of each place."""
        return {(tp.topic, tp.partition): offset for tp, offset in self._position.items()}

    async def poll(self, seconds: float, max_records: int = 2000) -> list[LogRecord]:
        """Records in offset order per partition, possibly none after `seconds`. Raises LogError where it is stuck."""
        try:
            batches = await self._consumer.getmany(timeout_ms=int(seconds * 1000), max_records=max_records)
        except OffsetOutOfRangeError as error:
            raise LogError(f"the broker no longer has the next offset: {error}") from error
        records = [_record(message) for messages in batches.values() for message in messages]
        for tp, messages in batches.items():
            if messages:
                self._position[tp] = messages[-1].offset + 1
        await self._watch(bool(records))
        return records

    async def ends(self) -> dict[Place, int]:
        """The end offset of each place now: one past its last record."""
        return await end_offsets(self._broker, self.positions)

    async def until(self, ends: Mapping[Place, int]) -> AsyncIterator[list[LogRecord]]:
        """Batches until every place has reached its end; records behind it may come too."""
        while any(self.positions[place] < end for place, end in ends.items()):
            yield await self.poll(0.2)

    async def _seek(self) -> None:
        places = list(self._starts)
        self._consumer.assign(places)
        first = await self._consumer.beginning_offsets(places)
        ends = await end_offsets(self._broker, places)
        for tp, wanted in self._starts.items():
            start, end = first[tp] if wanted is None else wanted, ends[tp.topic, tp.partition]
            if not first[tp] <= start <= end:
                raise LogError(
                    f"{tp.topic}/{tp.partition} holds offsets {first[tp]} to {end}, and {start} is to be read next"
                )
            self._consumer.seek(tp, start)
            self._position[tp] = start

    async def _watch(self, moved: bool) -> None:
        """A client can stay stuck after a broker restart without an error; a process that ends is started again. What
        was written a moment ago, after a quiet time, does not count: the log must have had more for as long again."""
        now = time.monotonic()
        if moved:
            self._moved_at, self._behind = now, False
        elif now - self._moved_at > STUCK_SECONDS:
            behind = any(self.positions[place] < end for place, end in (await self.ends()).items())
            if behind and self._behind:
                raise LogError(f"no record came for {STUCK_SECONDS:.0f} s though the log has more")
            self._moved_at, self._behind = now, behind


async def end_offsets(broker: Broker, places: Iterable[Place]) -> dict[Place, int]:
    """One past the last record of each place, as of a moment after the call. Raises LogError where no answer comes."""
    try:
        async with asyncio.timeout(STUCK_SECONDS):
            return await _end_offsets(broker, places)
    except TimeoutError as error:
        raise LogError(f"the broker did not say in {STUCK_SECONDS:.0f} s where its partitions end") from error


async def _end_offsets(broker: Broker, places: Iterable[Place]) -> dict[Place, int]:
    tps = [TopicPartition(*place) for place in places]
    async with _consumer(broker, max_partition_fetch_bytes=1) as probe:
        probe.assign(tps)
        first, near = await probe.beginning_offsets(tps), await probe.end_offsets(tps)
        for tp in tps:
            probe.seek(tp, max(first[tp], near[tp] - 1))
        while any(probe.highwater(tp) is None for tp in tps):
            await probe.getmany(timeout_ms=50)
        return {(tp.topic, tp.partition): max(near[tp], probe.highwater(tp)) for tp in tps}


async def read_all(
    broker: Broker, topic: str, partition: int, start: int | None = 0, end: int | None = None
) -> AsyncIterator[LogRecord]:
    """Records from `start` (None: the oldest) up to `end`, exclusive; by default the end offset at the call."""
    place = (topic, partition)
    async with LogTail(broker, {place: start}) as tail:
        stop = (await tail.ends())[place] if end is None else end
        async for batch in tail.until({place: stop}):
            for record in batch:
                if record.offset < stop:
                    yield record


def log_producer(broker: Broker, **settings: Any) -> AIOKafkaProducer:
    """A producer, not yet started, that waits for every in-sync replica and takes the largest event."""
    options = {"acks": "all", "linger_ms": 2, "max_request_size": MAX_REQUEST_BYTES, **settings}
    return AIOKafkaProducer(**client_options(broker), **options)


async def send(producer: AIOKafkaProducer, topic: str, partition: int, key: str, value: bytes) -> int:
    """Writes one event to an explicit partition; its offset once acknowledged."""
    metadata = await producer.send_and_wait(topic, value, key=key.encode(), partition=partition)
    return int(metadata.offset)


async def send_all(
    producer: AIOKafkaProducer, topic: str, partition: int, pairs: Iterable[tuple[str, bytes]]
) -> list[int]:
    """Writes events in order to one partition and gives their offsets once all are acknowledged."""
    offsets: list[int] = []
    waiting: list[asyncio.Future[Any]] = []
    for key, value in pairs:
        waiting.append(await producer.send(topic, value, key=key.encode(), partition=partition))
        if len(waiting) >= _BATCH:
            offsets += await _acknowledged(waiting)
            waiting = []
    return offsets + await _acknowledged(waiting)


async def _acknowledged(waiting: Sequence["asyncio.Future[Any]"]) -> list[int]:
    return [int(metadata.offset) for metadata in await asyncio.gather(*waiting)]


def _consumer(broker: Broker, **settings: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        **client_options(broker),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_bytes=4 * MAX_REQUEST_BYTES,
        fetch_max_wait_ms=100,
        **settings,
    )


def _record(message: Any) -> LogRecord:
    return LogRecord(
        message.topic,
        message.partition,
        message.offset,
        message.timestamp,
        message.key,
        message.value,
        tuple(message.headers),
    )
