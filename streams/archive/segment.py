"""A sealed segment: an Avro object container file of raw records, contiguous in offset, in a partition's folder.

Any Avro reader opens it. Equal records give equal bytes: the sync marker derives from topic, partition and offset.
"""

import hashlib
import io
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro

from eventlog.reader import LogRecord
from streams.archive.container import CODEC, MAX_SEGMENT_BYTES, PARSED, Container, open_container
from streams.archive.errors import ArchiveError

_SYNC_INTERVAL = 128 * 1024


@dataclass(frozen=True, slots=True)
class Segment:
    """A manifest's entry. previous: sha256 of the segment before it in the partition, empty for the first."""

    file: str
    first: int
    last: int
    size: int
    sha256: str
    previous: str

    @property
    def records(self) -> int:
        return self.last - self.first + 1


def segment_name(first: int, last: int) -> str:
    """The file of a segment; names sort in offset order."""
    return f"{first:020d}-{last:020d}.avro"


def encode_segment(records: Sequence[LogRecord]) -> bytes:
    """The file of contiguous records of one partition. Raises ArchiveError where offsets have a gap."""
    head = records[0]
    for expected, record in enumerate(records, head.offset):
        if record.offset != expected:
            raise ArchiveError(
                f"{head.topic}/{head.partition} jumps to offset {record.offset} where {expected} is next"
            )
    marker = hashlib.sha256(f"{head.topic}/{head.partition}/{head.offset}".encode()).digest()[:16]
    out = io.BytesIO()
    fastavro.writer(
        out,
        PARSED,
        (_to_avro(record) for record in records),
        codec=CODEC,
        sync_interval=_SYNC_INTERVAL,
        sync_marker=marker,
        metadata={"rods.topic": head.topic, "rods.partition": str(head.partition)},
    )
    return out.getvalue()


def read_segment(path: Path, segment: Segment, partition: int) -> Iterator[LogRecord]:
    """The records of a sealed segment, once its bytes have the recorded sha256. Raises ArchiveError."""
    where = f"segment {path} that begins at offset {segment.first}"
    container = open_segment(sealed_bytes(path, segment), partition, where)
    topic = container.metadata["rods.topic"]
    expected = segment.first
    try:
        for rows in container.blocks():
            for row in rows:
                if row.offset != expected:
                    raise ArchiveError(f"it holds offset {row.offset} where {expected} is next")
                yield LogRecord(topic, partition, *row)
                expected += 1
    except ArchiveError as error:
        raise ArchiveError(f"{where} cannot be read at offset {expected}: {error}") from error
    if expected != segment.last + 1:
        raise ArchiveError(f"segment {path} ends before offset {expected}, and its manifest says {segment.last}")


def sealed_bytes(path: Path, segment: Segment) -> bytes:
    """A segment's file, whose size and sha256 are the manifest's. Raises ArchiveError."""
    where = f"segment {path} that begins at offset {segment.first}"
    try:
        status = path.stat()
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            raise ArchiveError(f"{where} is no ordinary file")
        if size != segment.size:
            raise ArchiveError(f"{where} has another size than its manifest says: {size} for {segment.size}")
        if size > MAX_SEGMENT_BYTES:
            raise ArchiveError(f"{where} has {size} bytes, and {MAX_SEGMENT_BYTES} are allowed")
        data = path.read_bytes()
    except OSError as error:
        raise ArchiveError(f"{where} cannot be read: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != segment.sha256:
        raise ArchiveError(f"{where} has another sha256 than its manifest says")
    return data


def open_segment(data: bytes, partition: int, where: str) -> Container:
    """The container of a segment of this partition. Raises ArchiveError, which begins with `where`."""
    try:
        container = open_container(data)
        if container.metadata.get("rods.partition") != str(partition) or "rods.topic" not in container.metadata:
            raise ArchiveError("it belongs to another partition")
    except ArchiveError as error:
        raise ArchiveError(f"{where} cannot be read: {error}") from error
    return container


def _to_avro(record: LogRecord) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }
