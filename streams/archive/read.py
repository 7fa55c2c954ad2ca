"""Reading an archive back: every record in order, with the chain and every file's sha256 checked on the way."""

from collections.abc import Iterator
from pathlib import Path

from eventlog.reader import LogRecord
from schemas.topics import Topic
from streams.archive.errors import ArchiveError
from streams.archive.manifest import read_manifest
from streams.archive.partition import partition_folder
from streams.archive.segment import read_segment


def archived_partitions(folder: Path, topic: Topic) -> list[int]:
    """The partitions of a topic that an archive knows, in order."""
    return sorted(int(path.name) for path in (folder / topic.value).glob("[0-9]*") if path.is_dir())


def read_partition(folder: Path, topic: Topic, partition: int, start: int = 0) -> Iterator[LogRecord]:
    """A partition's records from an offset on. Raises ArchiveError, naming the file and the offset."""
    place = partition_folder(folder, topic, partition)
    for segment in read_manifest(place).segments:
        if segment.last >= start:
            records = read_segment(place / segment.file, segment, partition)
            yield from (record for record in records if record.offset >= start)


def read_archive(folder: Path, topic: Topic) -> Iterator[LogRecord]:
    """A topic's records, partition by partition, in offset order. Raises ArchiveError where there is no archive."""
    if not folder.is_dir():
        raise ArchiveError(f"there is no archive at {folder}")
    for partition in archived_partitions(folder, topic):
        yield from read_partition(folder, topic, partition)
