"""An archive back into an empty broker: the same records at the same offsets, with the times they had.

A broker gives offsets itself, one after the other, so a partition is written from its first offset on and every
acknowledged offset is compared. What the archive lacks before its first record can be filled with records that no
reader takes for events. Topics must keep what is old: their retention is the caller's to set (`retention.ms=-1`), since
records whose time has passed would be expired on arrival.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from aiokafka.errors import KafkaError

from eventlog.client import log_producer
from eventlog.connection import Broker
from eventlog.reader import LogRecord, end_offsets
from schemas.topics import Topic
from streams.archive.cut import Cut
from streams.archive.errors import ArchiveError
from streams.archive.manifest import Manifest, read_manifest
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions, read_partition

FILLER_HEADER = "rods.filler"
_BATCH = 2_000
_BATCH_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class RestoreSettings:
    """cut: nothing behind it is written; None: everything.
    fill_gaps: fill what the archive lacks at the beginning.
    """

    broker: Broker
    prefix: str
    archive: Path
    cut: Cut | None = None
    fill_gaps: bool = False


@dataclass(frozen=True, slots=True)
class PartitionRestore:
    """A partition to write.

    first: of the archive.
    end: exclusive, after the cut.
    """

    topic: Topic
    partition: int
    first: int
    end: int


def archived_partition_count(archive: Path) -> int:
    """N of the archived run. Raises ArchiveError where the folder holds none."""
    numbers = archived_partitions(archive, Topic.ROLLOUTS)
    if not numbers or numbers != list(range(len(numbers))):
        raise ArchiveError(f"there is no whole archive at {archive}")
    return len(numbers)


def plans(settings: RestoreSettings) -> list[PartitionRestore]:
    """What is to be written. Raises ArchiveError for gaps that may not be filled, and where the cut is not held."""
    planned = []
    for topic in Topic:
        for partition in archived_partitions(settings.archive, topic):
            manifest = read_manifest(partition_folder(settings.archive, topic, partition))
            planned.append(_plan(settings, topic, partition, manifest))
    return planned


def _plan(settings: RestoreSettings, topic: Topic, partition: int, manifest: Manifest) -> PartitionRestore:
    held = manifest.next_offset or 0
    first = manifest.segments[0].first if manifest.segments else 0
    end = held if settings.cut is None else settings.cut.end(topic, partition)
    if held < end:
        raise ArchiveError(f"the archive of {topic.value}/{partition} ends at {held}, before the cut's {end}")
    if first and not settings.fill_gaps:
        raise ArchiveError(
            f"the archive of {topic.value}/{partition} begins at offset {first}, and what is before it is lost; "
            "--fill-gaps puts records there that no reader takes for events"
        )
    return PartitionRestore(topic, partition, min(first, end), end)


async def restore(settings: RestoreSettings, progress: Callable[[int, int], None] = lambda *_: None) -> int:
    """Writes the archive to topics that exist and are empty; the number of its records. progress takes records written,
    and how many there are. Raises ArchiveError, also where the broker gives another offset than the archive has."""
    planned = plans(settings)
    total = sum(plan.end - plan.first for plan in planned)
    try:
        await _check_empty(settings, planned)
        done = 0
        async with log_producer(settings.broker, max_batch_size=_BATCH_BYTES) as producer:
            for plan in planned:
                for batch in _batches(_records(settings, plan)):
                    await _write(producer, plan.topic.named(settings.prefix), batch)
                    done += sum(record.offset >= plan.first for record in batch)
                    progress(done, total)
        await _check_ends(settings, planned)
    except KafkaError as error:
        raise ArchiveError(f"the broker at {settings.broker} refuses to take the archive: {error}") from error
    return total


def _records(settings: RestoreSettings, plan: PartitionRestore) -> Iterator[LogRecord]:
    topic = plan.topic.named(settings.prefix)
    fillers = (
        LogRecord(topic, plan.partition, offset, 0, None, None, ((FILLER_HEADER, b"1"),))
        for offset in range(plan.first)
    )
    for record in chain(fillers, read_partition(settings.archive, plan.topic, plan.partition)):
        if record.offset >= plan.end:
            return
        yield record


def _batches(records: Iterator[LogRecord]) -> Iterator[list[LogRecord]]:
    batch: list[LogRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _write(producer: Any, topic: str, records: list[LogRecord]) -> None:
    """Writes records of one partition in order, and compares the offset of each batch."""
    rest = records
    while rest:
        batch = producer.create_batch()
        taken = 0
        for record in rest:
            headers = list(record.headers)
            if batch.append(key=record.key, value=record.value, timestamp=record.timestamp, headers=headers) is None:
                break
            taken += 1
        batch.close()
        written = await (await producer.send_batch(batch, topic, partition=rest[0].partition))
        if written.offset != rest[0].offset:
            raise ArchiveError(
                f"{topic}/{rest[0].partition} gave offset {written.offset} to the record of offset {rest[0].offset}: "
                "the topics are not empty, or somebody else writes to them"
            )
        rest = rest[taken:]


async def _check_empty(settings: RestoreSettings, planned: list[PartitionRestore]) -> None:
    ends = await _ends(settings, planned)
    for plan in planned:
        if end := ends[plan.topic.named(settings.prefix), plan.partition]:
            name = f"{plan.topic.named(settings.prefix)}/{plan.partition}"
            raise ArchiveError(f"{name} holds {end} records already, and an archive is restored into empty topics")


async def _check_ends(settings: RestoreSettings, planned: list[PartitionRestore]) -> None:
    ends = await _ends(settings, planned)
    for plan in planned:
        end = ends[plan.topic.named(settings.prefix), plan.partition]
        if end != plan.end:
            raise ArchiveError(f"{plan.topic.named(settings.prefix)}/{plan.partition} ends at {end} for {plan.end}")


async def _ends(settings: RestoreSettings, planned: list[PartitionRestore]) -> dict[tuple[str, int], int]:
    return await end_offsets(settings.broker, [(plan.topic.named(settings.prefix), plan.partition) for plan in planned])
