"""One partition on its way to disk: records gather in memory and are sealed together."""

import hashlib
import os
from pathlib import Path

from eventlog.reader import LogRecord
from schemas.topics import Topic
from streams.archive.durable import make_folder, write_durably
from streams.archive.errors import ArchiveError
from streams.archive.manifest import Manifest, append, take_up
from streams.archive.segment import Segment, encode_segment, segment_name

_RECORD_OVERHEAD = 64


def partition_folder(folder: Path, topic: Topic, partition: int) -> Path:
    """Where a partition's segments lie within an archive."""
    return folder / topic.value / f"{partition:05d}"


class PartitionArchive:
    """Owns the unsealed records of a partition. The manifest decides what is archived; nothing else is kept."""

    def __init__(self, folder: Path, topic: Topic, partition: int) -> None:
        self._folder = partition_folder(folder, topic, partition)
        make_folder(self._folder, folder)
        self._manifest: Manifest = take_up(self._folder)
        self._records: list[LogRecord] = []
        self._opened_at = 0.0
        self.unsealed_bytes = 0

    @property
    def next_offset(self) -> int | None:
        """The first offset that no sealed segment holds; None where the archive holds none."""
        return self._manifest.next_offset

    def add(self, record: LogRecord, now: float) -> None:
        """Takes the next record. now: seconds of any monotonic clock. Raises ArchiveError where offsets jump."""
        expected = self._records[-1].offset + 1 if self._records else self._manifest.next_offset
        if expected is not None and record.offset != expected:
            raise ArchiveError(f"{record.topic}/{record.partition} jumps to offset {record.offset} from {expected}")
        if not self._records:
            self._opened_at = now
        self._records.append(record)
        self.unsealed_bytes += len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD

    def due(self, now: float, seconds: float, size: int) -> bool:
        """Whether the unsealed records are old enough, or large enough, to be sealed."""
        return bool(self._records) and (now - self._opened_at >= seconds or self.unsealed_bytes >= size)

    def seal(self) -> None:
        """Makes what was added durable. Raises ArchiveConflictError where another archiver was first."""
        if not self._records:
            return
        data = encode_segment(self._records)
        first, last = self._records[0].offset, self._records[-1].offset
        sha256 = hashlib.sha256(data).hexdigest()
        segment = Segment(segment_name(first, last), first, last, len(data), sha256, self._manifest.head)
        unsealed = self._folder / f".{os.getpid()}.tmp"
        write_durably(unsealed, data)
        self._manifest = append(self._folder, self._manifest, segment, unsealed)
        self._records, self.unsealed_bytes = [], 0
