"""Plain reading of partitions: no consumer group, explicit offsets.

A reader without a group keeps its own place (a manifest, a table, a fold's next offset); the broker keeps none for it.

Ends of partitions come from the high watermark of a fetch. The embedded broker answers the question made for it
(ListOffsets, latest) with one past the *first* record of the last batch: a reader that believes it stops too early.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from eventlog.client import LIVE_FETCH_MS, OBSERVER_FETCH_MS, plain_consumer
from eventlog.connection import Broker
from eventlog.errors import LogError
from eventlog.standstill import Place, Standstill
from schemas.codec import decode
from schemas.errors import UndecodableError

ANSWER_SECONDS = 60.0
_log = logging.getLogger(__name__)


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
    live: a worker depends on it, so that fetches are short and a broker that does not answer is waited for.
    """

    def __init__(self, broker: Broker, starts: Mapping[Place, int | None], *, live: bool = False) -> None:
        self._broker = broker
        self._starts = {TopicPartition(*place): start for place, start in starts.items()}
        self._consumer = plain_consumer(broker, LIVE_FETCH_MS if live else OBSERVER_FETCH_MS)
        self._position: dict[TopicPartition, int] = {}
        self._standstill = Standstill(partial(ends_if_answered if live else end_offsets, broker))

    async def __aenter__(self) -> "LogTail":
        try:
            await self._consumer.start()
            await self._seek()
        except BaseException:
            await self._consumer.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    @property
    def positions(self) -> dict[Place, int]:
        """The next offset of each place."""
        return {(tp.topic, tp.partition): offset for tp, offset in self._position.items()}

    async def poll(self, seconds: float, max_records: int | None = 2000) -> list[LogRecord]:
        """Records in offset order per partition, possibly none after `seconds`. Raises LogError where it is stuck."""
        try:
            batches = await self._consumer.getmany(timeout_ms=int(seconds * 1000), max_records=max_records)
        except OffsetOutOfRangeError as error:
            raise LogError(f"the broker no longer has the next offset: {error}") from error
        records = [_record(message) for messages in batches.values() for message in messages]
        for tp, messages in batches.items():
            if messages:
                self._position[tp] = messages[-1].offset + 1
        await self._standstill.polled(self._held, moved=bool(records))
        return records

    async def ends(self) -> dict[Place, int]:
        """The end offset of each place now: one past its last record."""
        return await end_offsets(self._broker, self.positions)

    async def last_batches(self) -> dict[Place, int]:
        """An offset within the last batch of each place now, or its end: what `ends` tells without another client."""
        ends = await self._consumer.end_offsets(list(self._position))
        return {(tp.topic, tp.partition): offset for tp, offset in ends.items()}

    async def until(self, ends: Mapping[Place, int]) -> AsyncIterator[list[LogRecord]]:
        """Batches until every place has reached its end; records behind it may come too."""
        while any(self.positions[place] < end for place, end in ends.items()):
            yield await self.poll(0.2)

    async def _held(self) -> dict[Place, int]:
        return self.positions

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


async def end_offsets(broker: Broker, places: Iterable[Place]) -> dict[Place, int]:
    """One past the last record of each place, as of a moment after the call. Raises LogError where no answer comes."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await _end_offsets(broker, places)
    except TimeoutError as error:
        raise LogError(f"the broker did not say in {ANSWER_SECONDS:.0f} s where its partitions end") from error


async def ends_if_answered(broker: Broker, places: Iterable[Place]) -> dict[Place, int]:
    """As `end_offsets`; nothing where the broker does not answer, which proves nothing."""
    try:
        return await end_offsets(broker, places)
    except (KafkaError, LogError) as error:
        _log.warning("whether the log has more cannot be asked: %s", error)
        return {}


async def _end_offsets(broker: Broker, places: Iterable[Place]) -> dict[Place, int]:
    tps = [TopicPartition(*place) for place in places]
    async with plain_consumer(broker, max_partition_fetch_bytes=1) as probe:
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


def readable(record: Any) -> Any | None:
    """The event in a record; None for bytes that hold none. Raises UnknownFingerprintError."""
    try:
        return decode(record.value or b"")
    except UndecodableError as error:
        _log.warning("%s/%d at %d: %s", record.topic, record.partition, record.offset, error)
        return None


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
