"""A sealed segment: an Avro object container file of raw records, contiguous in offset, in a partition's folder.

Any Avro reader opens it. Equal records give equal bytes: the sync marker derives from topic, partition and offset.
"""

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import fastavro.schema

from streams.archive.errors import ArchiveError
from streams.log_reader import LogRecord

CODEC = "zstandard"
_SCHEMA: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "ArchivedRecord",
        "namespace": "rods.archive",
        "fields": [
            {"name": "offset", "type": "long"},
            {"name": "timestamp", "type": "long", "doc": "milliseconds since the epoch"},
            {"name": "key", "type": ["null", "bytes"], "default": None},
            {"name": "value", "type": ["null", "bytes"], "default": None},
            {
                "name": "headers",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Header",
                        "fields": [
                            {"name": "key", "type": "string"},
                            {"name": "value", "type": ["null", "bytes"], "default": None},
                        ],
                    },
                },
            },
        ],
    },
    named_schemas={},
)


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
        _SCHEMA,
        (_to_avro(record) for record in records),
        codec=CODEC,
        sync_marker=marker,
        metadata={"rods.topic": head.topic, "rods.partition": str(head.partition)},
    )
    return out.getvalue()


def read_segment(path: Path, segment: Segment, partition: int) -> Iterator[LogRecord]:
    """The records of a sealed segment, once its bytes have the recorded sha256. Raises ArchiveError."""
    reader = _open(path, segment, partition)
    topic = reader.metadata["rods.topic"]
    expected = segment.first
    try:
        for row in reader:
            if row["offset"] != expected:
                raise ArchiveError(f"segment {path} holds offset {row['offset']} where {expected} is next")
            yield _from_avro(row, topic, partition)
            expected += 1
    except ArchiveError:
        raise
    except Exception as error:
        raise ArchiveError(f"segment {path} cannot be decoded at offset {expected}: {error}") from error
    if expected != segment.last + 1:
        raise ArchiveError(f"segment {path} ends before offset {expected}, and its manifest says {segment.last}")


def _open(path: Path, segment: Segment, partition: int) -> Any:
    """A reader over bytes that are the manifest's and of our schema, so that every row has the expected fields."""
    where = f"segment {path} that begins at offset {segment.first}"
    try:
        if path.stat().st_size != segment.size:
            raise ArchiveError(f"{where} has another size than its manifest says")
        data = path.read_bytes()
    except OSError as error:
        raise ArchiveError(f"{where} cannot be read: {error}") from error
    if hashlib.sha256(data).hexdigest() != segment.sha256:
        raise ArchiveError(f"{where} has another sha256 than its manifest says")
    try:
        reader = fastavro.reader(io.BytesIO(data))
        canonical = fastavro.schema.to_parsing_canonical_form(reader.writer_schema)
    except Exception as error:
        raise ArchiveError(f"{where} is no Avro container file") from error
    if canonical != fastavro.schema.to_parsing_canonical_form(_SCHEMA):
        raise ArchiveError(f"{where} has another schema than archived records have")
    if reader.metadata.get("rods.partition") != str(partition) or "rods.topic" not in reader.metadata:
        raise ArchiveError(f"{where} belongs to another partition")
    return reader


def _to_avro(record: LogRecord) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers],
    }


def _from_avro(row: Any, topic: str, partition: int) -> LogRecord:
    headers = tuple((header["key"], header["value"]) for header in row["headers"])
    timestamp = row["timestamp"]
    return LogRecord(topic, partition, row["offset"], timestamp, row["key"], row["value"], headers)
