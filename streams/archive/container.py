"""The Avro object container format, read without trust: every length has a limit before anything of it is held.

A few kilobytes of zstd can unfold to gigabytes, so blocks are decompressed by hand, up to a bound, and decoded one at a
time: memory stays near the largest block, whatever a file claims. Format: Avro specification 1.11, object container
files. A block's rows are decoded at once, as the items of an array.
"""

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

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
_LONGEST_VARINT = 10
_LARGE_BLOCK = 1024 * 1024
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
_ROWS: Any = fastavro.parse_schema({"type": "array", "items": SCHEMA}, named_schemas={})


@dataclass(frozen=True, slots=True)
class Container:
    """A file whose header is ours. metadata: what the header says beside schema and codec."""

    data: bytes
    metadata: dict[str, str]
    sync: bytes
    start: int
    compressed: bool

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """The rows, block by block. Raises ArchiveError where bytes are missing, too many, or of another form."""
        return (_rows(data, count) for data, count in self._unpacked_blocks())

    def rows_at(self, places: Callable[[bytes], Iterable[int]]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows that hold at least one of the places, and the number of each in the container. places: of a block's
        bytes, in ascending order. What lies between is passed over and not decoded. Raises ArchiveError."""
        first = 0
        for data, count in self._unpacked_blocks():
            for number, row in _rows_at(data, count, places(data)):
                yield first + number, row
            first += count

    def _unpacked_blocks(self) -> Iterator[tuple[bytes, int]]:
        """Each block's bytes and the number of rows that it claims."""
        at = self.start
        while at < len(self.data):
            count, at = _long(self.data, at)
            size, at = _long(self.data, at)
            end = at + size
            if size < 0 or self.data[end : end + _SYNC_BYTES] != self.sync:
                raise ArchiveError("a block is cut short or its sync marker is wrong")
            yield _unpacked(self.data[at:end]) if self.compressed else self.data[at:end], count
            at = end + _SYNC_BYTES


def open_container(data: bytes) -> Container:
    """Reads the header. Raises ArchiveError where it is none, too large, or of another schema or codec."""
    if len(data) > MAX_SEGMENT_BYTES:
        raise ArchiveError(f"it has {len(data)} bytes, and {MAX_SEGMENT_BYTES} are allowed")
    if data[: len(MAGIC)] != MAGIC:
        raise ArchiveError("it is no Avro container file")
    metadata, at = _metadata(data[:MAX_HEADER_BYTES], len(MAGIC))
    if not _is_ours(metadata.pop("avro.schema", b"")):
        raise ArchiveError("it has another schema than archived records have")
    codec = metadata.pop("avro.codec", b"null").decode("ascii", "replace")
    if codec not in (CODEC, "null"):
        raise ArchiveError(f"its codec is {codec[:20]!r}, and {CODEC!r} is expected")
    sync = data[at : at + _SYNC_BYTES]
    if len(sync) != _SYNC_BYTES:
        raise ArchiveError("its header is cut short")
    texts = {key: value.decode("utf-8", "replace") for key, value in metadata.items()}
    return Container(data, texts, sync, at + _SYNC_BYTES, codec == CODEC)


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


def _rows(data: bytes, count: int) -> list[dict[str, Any]]:
    if not 0 < count <= min(MAX_BLOCK_ROWS, len(data) // _SMALLEST_ROW):
        raise ArchiveError(f"a block claims {count} records in {len(data)} bytes")
    if len(data) > _LARGE_BLOCK:
        return _rows_by_hand(data, count)
    items = io.BytesIO(_varint(count) + data + b"\0")
    try:
        rows: Any = fastavro.schemaless_reader(items, _ROWS, None)
    except Exception as error:
        raise ArchiveError(f"a block's records do not decode: {type(error).__name__}") from error
    if items.read(1):
        raise ArchiveError("a block has bytes behind its last record")
    decoded: list[dict[str, Any]] = rows
    return decoded


def _rows_by_hand(data: bytes, count: int) -> list[dict[str, Any]]:
    """The same for a block in which millions of empty headers would fit: they are counted before any is held."""
    rows, at = [], 0
    for _ in range(count):
        row, at = _row(data, at)
        rows.append(row)
    if at != len(data):
        raise ArchiveError("a block has bytes behind its last record")
    return rows


def _rows_at(data: bytes, count: int, places: Iterable[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a block that hold places, each with its number."""
    at = number = 0
    for place in places:
        while at <= place:
            if number >= count:
                raise ArchiveError(f"a block holds more than the {count} records that it claims")
            begin, at = at, _row_end(data, at)
            number += 1
            if place < at:
                yield number - 1, _row(data, begin)[0]


def _row(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    row: dict[str, Any] = {}
    row["offset"], at = _long(data, at)
    row["timestamp"], at = _long(data, at)
    row["key"], at = _nullable(data, at)
    row["value"], at = _nullable(data, at)
    row["headers"], at = _headers(data, at)
    return row, at


def _row_end(data: bytes, at: int) -> int:
    """Where the row that begins here ends."""
    key = _TO_KEY(data, at)
    value = _TO_VALUE(data, key.end() + _size(key[1])) if key else None
    end = value.end() + _size(value[1]) if value else len(data)
    return end + 1 if data[end : end + 1] == b"\0" else _row(data, at)[1]


_EVEN = b"".join([re.escape(bytes([byte])) for byte in range(0, 0x80, 2)])
_EVEN_MORE = b"".join([re.escape(bytes([byte])) for byte in range(0x80, 0x100, 2)])
_SIZE = rb"([%s]|[%s][\x80-\xff]{0,2}[\x01-\x7f])" % (_EVEN, _EVEN_MORE)
_TO_KEY = re.compile(rb"(?:[\x80-\xff]{0,9}[\x00-\x7f]){2}\x02" + _SIZE, re.DOTALL).match
_TO_VALUE = re.compile(rb"\x02" + _SIZE, re.DOTALL).match
"""A row up to its key's bytes, and from behind them up to its value's. Nearly every row has both, and no headers."""


@lru_cache(maxsize=4096)
def _size(encoded: bytes) -> int:
    return _long(encoded, 0)[0]


def _headers(data: bytes, at: int) -> tuple[list[dict[str, Any]], int]:
    headers: list[dict[str, Any]] = []
    count, at = _long(data, at)
    while count:
        if count < 0:
            count = -count
            _, at = _long(data, at)
        if len(headers) + count > MAX_ROW_HEADERS:
            raise ArchiveError(f"a record has more than {MAX_ROW_HEADERS} headers")
        for _ in range(count):
            key, at = _bytes(data, at)
            value, at = _nullable(data, at)
            headers.append({"key": key.decode("utf-8", "replace"), "value": value})
        count, at = _long(data, at)
    return headers, at


def _nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    branch, at = _long(data, at)
    if branch not in (0, 1):
        raise ArchiveError("a record's values do not decode")
    return _bytes(data, at) if branch else (None, at)


def _metadata(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    pairs: dict[str, bytes] = {}
    count, at = _long(data, at)
    while count:
        if count < 0:
            count = -count
            _, at = _long(data, at)
        for _ in range(count):
            key, at = _bytes(data, at)
            value, at = _bytes(data, at)
            pairs[key.decode("utf-8", "replace")] = value
        count, at = _long(data, at)
    return pairs, at


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    if size < 0 or at + size > len(data):
        raise ArchiveError("a length exceeds the bytes that are there")
    return data[at : at + size], at + size


def _long(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag varint and where it ends."""
    value = 0
    for position, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + position + 1
    raise ArchiveError("a length is cut short or too long")


def _varint(value: int) -> bytes:
    rest, out = value << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


@cache
def _is_ours(text: bytes) -> bool:
    """Whether a header's schema has the canonical form of ours."""
    try:
        canonical = fastavro.schema.to_parsing_canonical_form(json.loads(text))
    except Exception:  # noqa: BLE001  # any text at all may stand in a header
        return False
    return bool(canonical == fastavro.schema.to_parsing_canonical_form(SCHEMA))
