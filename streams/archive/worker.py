"""The archiver: follows every topic-partition of a run and seals what it reads.

Where it goes on is the manifest's, so a killed archiver loses nothing and doubles nothing. SIGTERM makes it archive
everything up to the end offsets of that moment, seal, and end.

What is synced to disk, and when: the folders and the schema texts before any record; then a segment's bytes, then its
name, then the manifest's line (and the manifest's name with the first line), each before the next begins. So an entry
on disk has its segment on disk, complete; records not yet sealed are in memory alone, for `seal_seconds` or
`seal_bytes` at most, and are read from the broker again.
"""

import asyncio
import json
import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from eventlog.connection import Broker
from eventlog.reader import LogRecord, LogTail
from eventlog.standstill import Place
from schemas.codec import AVRO_FOLDER
from schemas.topics import Topic
from streams.archive.durable import make_folder, sync, write_durably
from streams.archive.errors import ArchiveError
from streams.archive.partition import PartitionArchive

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """partitions: N. A partition is sealed `seal_seconds` after its first unsealed record, or at `seal_bytes`."""

    broker: Broker
    prefix: str
    partitions: int
    folder: Path
    seal_seconds: float = 2.0
    seal_bytes: int = 8 * 1024 * 1024
    drain_seconds: float = 30.0


def places(prefix: str, partitions: int) -> dict[Place, tuple[Topic, int]]:
    """Every topic-partition of a run."""
    return {
        (topic.named(prefix), number): (topic, number)
        for topic in Topic
        for number in range(partitions if topic.by_task else 1)
    }


def run_archive(settings: ArchiveSettings) -> None:
    """Archives until SIGTERM or SIGINT. Blocks. Raises ArchiveError, LogError, TimeoutError (drain took too long)."""
    asyncio.run(_until_signalled(settings))


async def archive_until(settings: ArchiveSettings, stopping: asyncio.Event) -> None:
    """Archives until `stopping` is set, then up to the end offsets of that moment."""
    keep_schemas(settings.folder)
    archives = {
        place: PartitionArchive(settings.folder, topic, number)
        for place, (topic, number) in places(settings.prefix, settings.partitions).items()
    }
    starts = {place: archive.next_offset for place, archive in archives.items()}
    async with LogTail(settings.broker, starts) as tail:
        while not stopping.is_set():
            _take(archives, await tail.poll(_POLL_SECONDS), settings)
        await _drain(tail, archives, settings)


def keep_schemas(folder: Path) -> None:
    """Copies the schema texts beside the records, durably. One that was cut short there is written again. Raises
    ArchiveError where one differs: it was edited, or the archive is another version's."""
    target = folder / "schemas"
    make_folder(target, folder)
    for source in sorted(AVRO_FOLDER.glob("*.avsc")):
        ours, kept = source.read_bytes(), target / source.name
        held = kept.read_bytes() if kept.exists() else None
        if held == ours:
            continue
        if held is not None:
            if not _is_torn(held):
                raise ArchiveError(f"the schema {source.name} differs from the one that {folder} was written with")
            _LOG.warning("the schema %s in %s was cut short and is written again", source.name, target)
        _keep(kept, ours)
    _keep(target / "index.json", (AVRO_FOLDER / "index.json").read_bytes())
    sync(target)


def _is_torn(text: bytes) -> bool:
    """Whether a text is no JSON, as a copy that was cut short is."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def _keep(target: Path, data: bytes) -> None:
    """The file appears complete, its bytes durable; its name is the caller's to sync."""
    unfinished = target.with_name(f".{os.getpid()}.{target.name}.tmp")
    write_durably(unfinished, data)
    unfinished.replace(target)


def _take(archives: dict[Place, PartitionArchive], records: list[LogRecord], settings: ArchiveSettings) -> None:
    now = asyncio.get_running_loop().time()
    for record in records:
        archive = archives[record.topic, record.partition]
        archive.add(record, now)
        if archive.unsealed_bytes >= settings.seal_bytes:
            archive.seal()
    for archive in archives.values():
        if archive.due(now, settings.seal_seconds, settings.seal_bytes):
            archive.seal()


async def _drain(tail: LogTail, archives: dict[Place, PartitionArchive], settings: ArchiveSettings) -> None:
    try:
        async with asyncio.timeout(settings.drain_seconds):
            ends = await tail.ends()
            async for records in tail.until(ends):
                _take(archives, records, settings)
    finally:
        for archive in archives.values():
            archive.seal()
    _LOG.info("archived %d partitions up to their ends", len(archives))


async def _until_signalled(settings: ArchiveSettings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await archive_until(settings, stopping)
