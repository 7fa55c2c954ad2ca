"""A sealed segment, record by record: is it what the manifest says, and is every event one that could be?

A segment whose bytes were changed is read on as far as it goes, so that the place of the change is told where the
records show it.
"""

import hashlib
import os
import stat
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.codec import decode_plain
from schemas.errors import SchemaError, UnknownFingerprintError
from streams.archive.container import MAX_SEGMENT_BYTES, Container
from streams.archive.errors import ArchiveError
from streams.archive.segment import Segment, open_segment
from streams.audit.verify_fault import Fault, FaultKind
from streams.audit.verify_form import Recogniser
from streams.audit.verify_identity import Expected, check_identity
from streams.audit.verify_manifest import PartitionPlace
from streams.audit.verify_values import check_values

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
    """What a segment came to. ids: 64 bits of each event's id, to find facts told twice. refused: known poison."""

    faults: list[Fault] = field(default_factory=list)
    records: int = 0
    attempts: int = 0
    refused: int = 0
    size: int = 0
    ids: "array[int]" = field(default_factory=lambda: array("Q"))


def verify_segment(job: SegmentJob) -> SegmentFindings:
    """Reads a segment to its end. Never raises for what the file holds."""
    return _Reading(job).findings()


class _Reading:
    def __init__(self, job: SegmentJob) -> None:
        self._job = job
        self._next = job.segment.first
        self._found = SegmentFindings()
        self._recogniser = Recogniser(job.expected)
        self._ids: list[bytes] = []

    def findings(self) -> SegmentFindings:
        data = self._bytes()
        if data is not None:
            self._found.size = len(data)
            try:
                self._read(open_segment(data, self._job.place.partition, "the segment"))
            except ArchiveError as error:
                self._fault(FaultKind.UNREADABLE, self._next, str(error), self._job.segment.last)
        self._found.ids = _halves(self._ids)
        return self._found

    def _fault(self, kind: FaultKind, offset: int, meaning: str, last: int | None = None) -> None:
        faults = self._found.faults
        if len(faults) < MOST_FAULTS:
            faults.append(self._job.place.fault(kind, self._job.segment.file, offset, meaning, last))

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
            self._place(row["offset"])
            self._event(row)
            self._found.records += 1
        last = self._job.segment.last
        if self._next != last + 1:
            meaning = f"the segment ends before offset {self._next}, and its manifest says {last}"
            self._fault(FaultKind.TORN, self._next, meaning, max(self._next, last))

    def _rows(self, container: Container) -> Iterator[dict[str, Any]]:
        try:
            for rows in container.blocks():
                yield from rows
        except ArchiveError as error:
            raise ArchiveError(f"the segment cannot be read on: {error}") from error

    def _place(self, offset: int) -> None:
        if offset > self._next:
            self._fault(FaultKind.GAP, self._next, f"offset {offset} follows where {self._next} is next", offset - 1)
        elif offset < self._next:
            meaning = f"offset {offset} stands where {self._next} is next: it came twice or out of order"
            self._fault(FaultKind.DUPLICATE, offset, meaning, self._next)
        self._next = offset + 1

    def _event(self, row: dict[str, Any]) -> None:
        value, offset = row["value"], row["offset"]
        if value is None:
            self._fault(FaultKind.UNDECODABLE, offset, "the record has no value")
            return
        if (attempts := self._recogniser.attempts(row["key"], value, self._ids)) is not None:
            self._found.attempts += attempts
            return
        try:
            kind, _, record = decode_plain(value)
        except UnknownFingerprintError as error:
            self._fault(FaultKind.UNKNOWN_SCHEMA, offset, str(error))
            return
        except SchemaError as error:
            if self._is_refused(offset, value):
                self._found.refused += 1
            else:
                self._fault(FaultKind.UNDECODABLE, offset, f"the record is no event: {error}")
            return
        self._known(row["key"], offset, kind, record, value)

    def _known(self, key: bytes | None, offset: int, kind: str, record: dict[str, Any], value: bytes) -> None:
        event_id = record["envelope"]["event_id"]
        fault = FaultKind.MISPLACED
        wrong = check_identity(self._job.expected, key, kind, record)
        if wrong is None:
            fault, wrong = FaultKind.VALUE, check_values(kind, record)
            if kind != "LearnerStarted":  # told to every partition by design
                self._ids.append(event_id.encode())
        if kind == "RolloutFinished":
            self._found.attempts += len(record["slots"])
        if wrong is None:
            return
        if self._is_refused(offset, value):
            self._found.refused += 1
        else:
            self._fault(fault, offset, f"{kind}: {wrong}")

    def _is_refused(self, offset: int, value: bytes) -> bool:
        refused = self._job.refused
        return bool(refused) and (offset, hashlib.sha256(value).hexdigest()) in refused


_HEX = np.zeros(256, dtype=np.uint64)
_HEX[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16, dtype=np.uint64)
_FIRST_DIGITS = [position for position in range(18) if position not in (8, 13)]
_PLACES = np.array([4 * power for power in range(15, -1, -1)], dtype=np.uint64)


def _halves(ids: list[bytes]) -> "array[int]":
    """The first 64 bits of each UUID."""
    digits = np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(-1, 36)[:, _FIRST_DIGITS]
    halves = np.bitwise_or.reduce(_HEX[digits] << _PLACES, axis=1)
    return array("Q", halves.astype(np.uint64).tobytes())
