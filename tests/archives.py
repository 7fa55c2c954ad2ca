"""Small archives, sealed record by record."""

from collections.abc import Iterable
from pathlib import Path

from eventlog.reader import LogRecord
from schemas.topics import Topic
from streams.archive.partition import PartitionArchive


def record(
    offset: int, value: bytes = b"v", key: str = "k", *, topic: Topic = Topic.POOL, partition: int = 0
) -> LogRecord:
    return LogRecord(topic.named("rods."), partition, offset, 1, key.encode(), value, ())


def seal(
    archive: Path, topic: Topic, partition: int, records: Iterable[LogRecord], size: int | None = None
) -> PartitionArchive:
    """Seals records behind those that are there. size: records of a segment; None: one segment holds them all."""
    grown = PartitionArchive(archive, topic, partition)
    for number, one in enumerate(records, 1):
        grown.add(one, 0.0)
        if size and number % size == 0:
            grown.seal()
    grown.seal()
    return grown
