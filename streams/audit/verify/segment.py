"""A sealed segment, record by record: is it what the manifest says, and is every event one that could be?

A segment whose bytes were changed is read on as far as it goes, so that the place of the change is told where the
records show it.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from streams.archive.container import MAX_SEGMENT_BYTES, ArchivedRow, Container
from streams.archive.errors import ArchiveError
from streams.archive.segment import Segment, open_segment
from streams.audit.collector import uncollected
from streams.audit.verify.fault import Fault, FaultKind
from streams.audit.verify.identity import Expected
from streams.audit.verify.manifest import PartitionPlace
from streams.audit.verify.record import Counts, RecordReading

MOST_FAULTS = 50


@dataclass(frozen=True, slots=True)
class SegmentJob:
    """A segment to verify; small, so that it can be sent to another process. refused: offset and sha256 of bytes that
    the dead letters already tell of."""

    place: PartitionPlace
    segment: Segment
    expected: Expected
    refused: frozenset[tuple[int, str]] = frozenset()


@dataclass(slots=True)
class SegmentFindings:
    """What a segment came to. size: its bytes."""

    counts: Counts
    faults: list[Fault] = field(default_factory=list)
    size: int = 0


@uncollected()
def verify_segment(job: SegmentJob) -> SegmentFindings:
    """Reads a segment to its end. Never raises for what the file holds."""
    return _Reading(job).findings()


class _Reading:
    def __init__(self, job: SegmentJob) -> None:
        self._job = job
        self._faults: list[Fault] = []
        self._records = RecordReading(job.expected, job.refused, job.segment.first, self._fault)

    def findings(self) -> SegmentFindings:
        data = self._bytes()
        if data is not None:
            try:
                self._read(open_segment(data, self._job.place.partition, "the segment"))
            except ArchiveError as error:
                self._fault(FaultKind.UNREADABLE, self._records.next, str(error), self._job.segment.last)
        return SegmentFindings(self._records.counts(), self._faults, len(data or b""))

    def _fault(self, kind: FaultKind, offset: int, meaning: str, last: int | None = None) -> None:
        if len(self._faults) < MOST_FAULTS:
            self._faults.append(self._job.place.fault(kind, self._job.segment.file, offset, meaning, last))

    def _bytes(self) -> bytes | None:
        """The file's, whether or not they are the sealed ones; None where there is nothing to read on."""
        segment = self._job.segment
        path = self._job.place.folder / segment.file
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SEGMENT_BYTES:
                raise OSError(0, f"it is no file of at most {MAX_SEGMENT_BYTES} bytes")
            data = path.read_bytes()
        except OSError as error:
            meaning = f"the segment cannot be read: {error.strerror or os.strerror(error.errno or 0)}"
            self._fault(FaultKind.UNREADABLE, segment.first, meaning, segment.last)
            return None
        if len(data) != segment.size:
            kind = FaultKind.TORN if len(data) < segment.size else FaultKind.CHANGED
            meaning = f"the file has {len(data)} bytes, and its manifest says {segment.size}"
            self._fault(kind, segment.first, meaning, segment.last)
        elif hashlib.sha256(data).hexdigest() != segment.sha256:
            meaning = "the file's bytes are not those that were sealed: its sha256 differs from the manifest's"
            self._fault(FaultKind.CHANGED, segment.first, meaning, segment.last)
        return data

    def _read(self, container: Container) -> None:
        topic = self._job.place.topic
        if not container.metadata["rods.topic"].endswith(topic.value):
            raise ArchiveError("the segment cannot be read: it belongs to another topic")
        for row in self._rows(container):
            self._records.take(row.offset, row.key, row.value)
        last = self._job.segment.last
        if self._records.next != last + 1:
            meaning = f"the segment ends before offset {self._records.next}, and its manifest says {last}"
            self._fault(FaultKind.TORN, self._records.next, meaning, max(self._records.next, last))

    def _rows(self, container: Container) -> Iterator[ArchivedRow]:
        try:
            for rows in container.blocks():
                yield from rows
        except ArchiveError as error:
            raise ArchiveError(f"the segment cannot be read on: {error}") from error
