"""Where the audit reads from: one port, and two adapters behind it, an archive folder and a live cluster.

Reading is synchronous and by partition, so that partitions can be read by parallel processes; a source is small and can
be sent to them. A source has a fixed end: what is written while it is read is not seen.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, NamedTuple, Protocol

from aiokafka.errors import KafkaError

from eventlog.client import plain_consumer
from eventlog.connection import Broker
from eventlog.errors import LogError
from eventlog.reader import LogRecord, LogTail, end_offsets
from schemas.codec import decode
from schemas.errors import UndecodableError, UnknownFingerprintError
from schemas.topics import DOWNSTREAM_FIRST, Topic
from streams.archive.errors import ArchiveError
from streams.archive.manifest import read_manifest
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions, read_partition
from streams.audit.errors import AuditError

_BATCHES_AHEAD = 4


class LogSource(Protocol):
    """A run's log up to a fixed end."""

    def partitions(self, topic: Topic) -> list[int]:
        """The partitions of a topic, in order; none where the source lacks the topic."""

    def records(self, topic: Topic, partition: int, start: int = 0) -> Iterator[LogRecord]:
        """A partition's records in offset order. Raises AuditError."""

    def end(self, topic: Topic, partition: int) -> int:
        """One past the partition's last record; 0 where it is empty."""

    def place(self, topic: Topic, partition: int, offset: int) -> str:
        """A record's place in the log, for a person."""


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """An archive folder. Every file's sha256 is checked against the manifest as it is read."""

    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise AuditError(f"there is no archive at {self.folder}")

    def partitions(self, topic: Topic) -> list[int]:
        return archived_partitions(self.folder, topic)

    def records(self, topic: Topic, partition: int, start: int = 0) -> Iterator[LogRecord]:
        try:
            yield from read_partition(self.folder, topic, partition, start)
        except ArchiveError as error:
            raise AuditError(str(error)) from error

    def end(self, topic: Topic, partition: int) -> int:
        try:
            return read_manifest(partition_folder(self.folder, topic, partition)).next_offset or 0
        except ArchiveError as error:
            raise AuditError(str(error)) from error

    def place(self, topic: Topic, partition: int, offset: int) -> str:
        where = partition_folder(Path(), topic, partition)
        for segment in read_manifest(partition_folder(self.folder, topic, partition)).segments:
            if segment.first <= offset <= segment.last:
                return f"{where / segment.file} at offset {offset}"
        return f"{where} at offset {offset}"


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The topics of a run on a cluster, up to the ends that they had when the source was opened."""

    broker: Broker
    prefix: str
    ends: dict[tuple[str, int], int]

    @classmethod
    def open(cls, broker: Broker, prefix: str) -> "ClusterSource":
        """Fixes the ends, downstream first. Raises AuditError where there is no such log."""
        ends = asyncio.run(_ends(broker, prefix))
        if not ends:
            raise AuditError(f"the cluster has no topic under the prefix {prefix}")
        return cls(broker, prefix, ends)

    def partitions(self, topic: Topic) -> list[int]:
        return sorted(number for name, number in self.ends if name == topic.named(self.prefix))

    def records(self, topic: Topic, partition: int, start: int = 0) -> Iterator[LogRecord]:
        place, end = (topic.named(self.prefix), partition), self.end(topic, partition)
        if start >= end:
            return
        pump = _Pump(self.broker, place, range(start, end))
        Thread(target=pump.run, daemon=True).start()
        try:
            while isinstance(batch := pump.batches.get(), list):
                yield from batch
            if isinstance(batch, LogError | KafkaError):
                raise AuditError(f"{place[0]}/{partition} cannot be read: {batch}") from batch
            if batch is not None:
                raise batch
        finally:
            pump.left.set()

    def end(self, topic: Topic, partition: int) -> int:
        return self.ends.get((topic.named(self.prefix), partition), 0)

    def place(self, topic: Topic, partition: int, offset: int) -> str:
        return f"{topic.named(self.prefix)}/{partition} at offset {offset}"


class _Pump:
    """Reads a partition in a thread of its own, a few batches ahead; None ends them, an exception says why.

    A reader that is left half-way is closed wherever Python finds it, which may be inside a running event loop: all it
    may do there is to set `left`.
    """

    def __init__(self, broker: Broker, place: tuple[str, int], offsets: range) -> None:
        self._broker, self._place, self._offsets = broker, place, offsets
        self.batches: Queue[list[LogRecord] | Exception | None] = Queue(maxsize=_BATCHES_AHEAD)
        self.left = Event()

    def run(self) -> None:
        ending: Exception | None = None
        try:
            asyncio.run(self._read())
        except Exception as error:  # noqa: BLE001  it is raised where the records are taken
            ending = error
        self._put(ending)

    async def _read(self) -> None:
        start, end = self._offsets.start, self._offsets.stop
        async with LogTail(self._broker, {self._place: start or None}) as tail:
            while tail.positions[self._place] < end and not self.left.is_set():
                batch = [record for record in await tail.poll(0.2) if record.offset < end]
                if batch:
                    self._put(batch)

    def _put(self, batch: list[LogRecord] | Exception | None) -> None:
        """Waits for room, as long as somebody reads."""
        while not self.left.is_set():
            with suppress(Full):
                self.batches.put(batch, timeout=0.1)
                return


class Placed(NamedTuple):
    """An event, its frame, and its offset in its partition."""

    offset: int
    value: bytes
    event: Any


Decode = Callable[[bytes], Any]


def events(
    source: LogSource, topic: Topic, partition: int, start: int = 0, decoded: Decode = decode
) -> Iterator[Placed]:
    """A partition's events in order, each as `placed` has it. Raises AuditError."""
    for record in source.records(topic, partition, start):
        yield placed(source, topic, partition, record, decoded)


def placed(source: LogSource, topic: Topic, partition: int, record: LogRecord, decoded: Decode = decode) -> Placed:
    """A record's event; None where its bytes do not decode, and where the topic does not carry it: no reader of the run
    took it in. Raises AuditError."""
    value = record.value or b""
    try:
        event = decoded(value)
    except UndecodableError:
        event = None
    except UnknownFingerprintError as error:
        where = source.place(topic, partition, record.offset)
        raise AuditError(f"{where}: {error}; audit it with the version that wrote it, or a newer one") from error
    carried = event is not None and topic.carries(event.KIND)
    return Placed(record.offset, value, event if carried else None)


def topic_events(source: LogSource, topic: Topic) -> Iterator[tuple[int, Placed]]:
    """A topic's events, partition by partition, each with its partition."""
    for partition in source.partitions(topic):
        for placed in events(source, topic, partition):
            yield partition, placed


async def _ends(broker: Broker, prefix: str) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    try:
        async with plain_consumer(broker) as consumer:
            known = await consumer.topics()
            for topic in DOWNSTREAM_FIRST:
                name = topic.named(prefix)
                if name in known:
                    numbers = consumer.partitions_for_topic(name) or ()
                    found |= await end_offsets(broker, [(name, number) for number in sorted(numbers)])
    except KafkaError as error:
        raise AuditError(f"the cluster cannot be read: {error}") from error
    return found
