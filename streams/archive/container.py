"""The Avro object container format, read without trust: every length has a limit before anything of it is held.

A few kilobytes of zstd can unfold to gigabytes, so blocks are decompressed here, up to a bound, and decoded one at a
time: memory stays near the largest block, whatever a file claims. Format: Avro specification 1.11, object container
files; the header is fastavro's to read.
"""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import fastavro
import fastavro.schema
from backports import zstd

from schemas.codec import MAX_EVENT_BYTES
from streams.archive.errors import ArchiveError

MAGIC = b"Obj\x01"
CODEC = "zstandard"
MAX_HEADER_BYTES = 64 * 1024
MAX_SEGMENT_BYTES = 128 * 1024 * 1024
MAX_BLOCK_BYTES = 2 * MAX_EVENT_BYTES
MAX_BLOCK_ROWS = 65_536
MAX_ROW_HEADERS = 1_000
_SYNC_BYTES = 16
_WINDOW_LOG = 27
_SMALLEST_ROW = 5
SCHEMA: dict[str, Any] = {
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
}
PARSED: Any = fastavro.parse_schema(SCHEMA, named_schemas={})
_LONG: Any = fastavro.parse_schema({"type": "long"})
_HEADERS = SCHEMA["fields"][-1]["type"]["items"]
_HEADER: Any = fastavro.parse_schema(_HEADERS, named_schemas={})
_UP_TO_HEADERS: Any = fastavro.parse_schema({**SCHEMA, "fields": SCHEMA["fields"][:-1]}, named_schemas={})


class ArchivedRow(NamedTuple):
    """An archived record. timestamp: milliseconds since the epoch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Container:
    """A file whose header is ours. metadata: what the header says beside schema and codec."""

    data: bytes
    metadata: dict[str, str]
    sync: bytes
    start: int
    compressed: bool

    def blocks(self) -> Iterator[list[ArchivedRow]]:
        """The rows, block by block. Raises ArchiveError where bytes are missing, too many, or of another form."""
        return (_rows(data, count) for data, count in self._unpacked_blocks())

    def _unpacked_blocks(self) -> Iterator[tuple[bytes, int]]:
        """Each block's bytes and the number of rows that it claims."""
        body = io.BytesIO(self.data)
        body.seek(self.start)
        while body.tell() < len(self.data):
            count, size = _long(body), _long(body)
            packed = body.read(size) if 0 <= size <= len(self.data) else b""
            if len(packed) != size or body.read(_SYNC_BYTES) != self.sync:
                raise ArchiveError("a block is cut short or its sync marker is wrong")
            yield _unpacked(packed) if self.compressed else packed, count


def open_container(data: bytes) -> Container:
    """Reads the header. Raises ArchiveError where it is no header, too large, or of another schema or codec."""
    if len(data) > MAX_SEGMENT_BYTES:
        raise ArchiveError(f"it has {len(data)} bytes, and {MAX_SEGMENT_BYTES} are allowed")
    if data[: len(MAGIC)] != MAGIC:
        raise ArchiveError("it is no Avro container file")
    head = io.BytesIO(data[:MAX_HEADER_BYTES])
    try:
        header: Any = fastavro.block_reader(head)
    except Exception as error:
        raise ArchiveError("its header is cut short, too large, or does not decode") from error
    metadata: dict[str, str] = dict(header.metadata)
    if not _is_ours(metadata.pop("avro.schema", "")):
        raise ArchiveError("it has another schema than archived records have")
    codec = metadata.pop("avro.codec", "null")
    if codec not in (CODEC, "null"):
        raise ArchiveError(f"its codec is {codec[:20]!r}, and {CODEC!r} is expected")
    start = head.tell()
    return Container(data, metadata, data[start - _SYNC_BYTES : start], start, codec == CODEC)


def _unpacked(packed: bytes) -> bytes:
    """The block's bytes. Raises ArchiveError beyond the limit, without unfolding more than that."""
    unpacker = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})
    try:
        data = unpacker.decompress(packed, MAX_BLOCK_BYTES + 1)
    except (zstd.ZstdError, EOFError, MemoryError) as error:
        raise ArchiveError("a block does not decompress") from error
    if len(data) > MAX_BLOCK_BYTES:
        raise ArchiveError(f"a block decompresses to more than {MAX_BLOCK_BYTES} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise ArchiveError("a block's compressed bytes are cut short or too many")
    return data


def _rows(data: bytes, count: int) -> list[ArchivedRow]:
    if not 0 < count <= min(MAX_BLOCK_ROWS, len(data) // _SMALLEST_ROW):
        raise ArchiveError(f"a block claims {count} records in {len(data)} bytes")
    body = io.BytesIO(data)
    try:
        rows = [_row(body) for _ in range(count)]
    except ArchiveError:
        raise
    except Exception as error:
        raise ArchiveError(f"a block's records do not decode: {type(error).__name__}") from error
    if body.tell() != len(data):
        raise ArchiveError("a block has bytes behind its last record")
    return rows


def _row(body: io.BytesIO) -> ArchivedRow:
    """Reads a row. Its headers are counted before any is held: millions of empty ones fit into a block."""
    row: Any = fastavro.schemaless_reader(body, _UP_TO_HEADERS, None)
    headers: list[tuple[str, bytes | None]] = []
    while count := _long(body):
        if count < 0:  # then the size of these headers follows
            count = -count
            _long(body)
        if len(headers) + count > MAX_ROW_HEADERS:
            raise ArchiveError(f"a record has more than {MAX_ROW_HEADERS} headers")
        headers += [tuple(fastavro.schemaless_reader(body, _HEADER, None).values()) for _ in range(count)]
    return ArchivedRow(**row, headers=tuple(headers))


def _long(body: io.BytesIO) -> int:
    try:
        value: Any = fastavro.schemaless_reader(body, _LONG, None)
    except EOFError as error:
        raise ArchiveError("a length is cut short") from error
    return int(value)


@cache
def _is_ours(text: str) -> bool:
    """Whether a header's schema has the canonical form of ours."""
    try:
        canonical = fastavro.schema.to_parsing_canonical_form(json.loads(text))
    except Exception:  # noqa: BLE001  # a header may hold any text at all
        return False
    return bool(canonical == fastavro.schema.to_parsing_canonical_form(SCHEMA))
