"""Events to bytes and back: Avro single-object encoding.

Frame (Avro specification 1.11, single-object encoding): C3 01, the CRC-64-AVRO fingerprint of the writer's schema in
little-endian order, the body. Every version of a schema under `schemas/avro/` stays readable; events are written in
the newest one. Decoding accepts at most `MAX_EVENT_BYTES` and refuses trailing bytes.
"""

import io
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import fastavro.schema

from schemas.catalogue import BY_KIND, EVENT_TYPES
from schemas.derive import Convert, decoder, encoder
from schemas.envelope import Event
from schemas.errors import SchemaError, UndecodableError, UnknownFingerprintError
from schemas.quick_write import BODIES

MAGIC = b"\xc3\x01"
HEADER_BYTES = 10
MAX_EVENT_BYTES = 8 * 1024 * 1024
AVRO_FOLDER = Path(__file__).parent / "avro"


class _Writer(NamedTuple):
    header: bytes
    schema: Any
    encode: Convert


class _Reader(NamedTuple):
    kind: str
    version: int
    writer: Any
    reader: Any
    decode: Convert


def schema_path(kind: str, version: int) -> Path:
    """Where a version of an event's schema lies."""
    return AVRO_FOLDER / f"{kind}.v{version}.avsc"


def schema_versions(kind: str) -> list[int]:
    """The versions of an event's schema, oldest first."""
    return sorted(int(path.name.split(".v")[1].removesuffix(".avsc")) for path in AVRO_FOLDER.glob(f"{kind}.v*.avsc"))


def schema_text(kind: str, version: int) -> dict[str, Any]:
    """A version's schema as recorded, logical types included."""
    schema: dict[str, Any] = json.loads(schema_path(kind, version).read_text())
    return schema


def fingerprint(schema: dict[str, Any]) -> bytes:
    """CRC-64-AVRO of the parsing canonical form, 8 bytes, little-endian."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


def encode(event: Event) -> bytes:
    """The event's frame. Equal events give equal bytes. Raises SchemaError for values that the schema cannot hold."""
    writer, body = _writers()[event.KIND], BODIES.get(event.KIND)
    try:
        if body is not None:
            return writer.header + body(event)
        out = io.BytesIO()
        out.write(writer.header)
        fastavro.schemaless_writer(out, writer.schema, writer.encode(event))
    except (TypeError, ValueError, OverflowError, AttributeError, struct.error) as error:
        raise SchemaError(f"{event.KIND} cannot be encoded: {error}") from error
    return out.getvalue()


class PlainEvent(NamedTuple):
    """An event as plain values, in its newest version. version: the one it was written in."""

    kind: str
    version: int
    record: dict[str, Any]


def decode(data: bytes) -> Any:
    """The event in a frame, in its newest type. Raises UndecodableError, UnknownFingerprintError."""
    reader, record = _read(data)
    try:
        return reader.decode(record)
    except Exception as error:
        raise UndecodableError(f"{reader.kind} does not decode: {type(error).__name__}") from error


def decode_plain(data: bytes) -> PlainEvent:
    """As `decode`, without making instances of the event's types: for scans. Same errors."""
    reader, record = _read(data)
    return PlainEvent(reader.kind, reader.version, record)


def _read(data: bytes) -> tuple[_Reader, Any]:
    if len(data) > MAX_EVENT_BYTES:
        raise UndecodableError(f"an event of {len(data)} bytes exceeds the limit of {MAX_EVENT_BYTES}")
    if len(data) < HEADER_BYTES or data[:2] != MAGIC:
        raise UndecodableError("not an Avro single-object frame")
    reader = _readers().get(data[2:HEADER_BYTES])
    if reader is None:
        raise UnknownFingerprintError(data[2:HEADER_BYTES])
    body = io.BytesIO(data)
    body.seek(HEADER_BYTES)
    try:
        record = fastavro.schemaless_reader(body, reader.writer, reader.reader)
    except Exception as error:
        raise UndecodableError(f"{reader.kind} does not decode: {type(error).__name__}") from error
    if body.tell() != len(data):
        raise UndecodableError(f"{reader.kind} has {len(data) - body.tell()} trailing bytes")
    return reader, record


def encode_like(event: Event, frame: bytes) -> bytes:
    """The event's frame in the schema version of another frame, so that what is derived anew compares with an old log
    byte by byte. Raises UnknownFingerprintError, and SchemaError where the frame is of another kind."""
    reader = _readers().get(frame[2:HEADER_BYTES])
    if reader is None:
        raise UnknownFingerprintError(frame[2:HEADER_BYTES])
    if reader.kind != event.KIND:
        raise SchemaError(f"{event.KIND} cannot be encoded as {reader.kind}")
    out = io.BytesIO()
    out.write(frame[:HEADER_BYTES])
    fastavro.schemaless_writer(out, reader.writer, _writers()[event.KIND].encode(event))
    return out.getvalue()


def plain_record(frame: bytes) -> dict[str, Any]:
    """What a frame that decodes holds, as plain values, with the fields of the version that wrote it and no other."""
    body = io.BytesIO(frame)
    body.seek(HEADER_BYTES)
    record: dict[str, Any] = fastavro.schemaless_reader(body, _readers()[frame[2:HEADER_BYTES]].writer)
    return record


def kind_of_frame(data: bytes) -> str | None:
    """The kind a frame claims to be, without decoding it; None where its framing or fingerprint is unknown."""
    reader = _readers().get(data[2:HEADER_BYTES]) if data[:2] == MAGIC else None
    return reader.kind if reader else None


@cache
def _writers() -> dict[str, _Writer]:
    writers = {}
    for event_type in EVENT_TYPES:
        schema = schema_text(event_type.KIND, schema_versions(event_type.KIND)[-1])
        header = MAGIC + fingerprint(schema)
        writers[event_type.KIND] = _Writer(header, _parsed(schema), encoder(event_type))
    return writers


@cache
def _readers() -> dict[bytes, _Reader]:
    readers = {}
    for kind, event_type in BY_KIND.items():
        versions = schema_versions(kind)
        newest = _parsed(schema_text(kind, versions[-1]))
        for version in versions:
            schema = schema_text(kind, version)
            resolved = None if version == versions[-1] else newest
            reader = _Reader(kind, version, _parsed(schema), resolved, decoder(event_type))
            readers[fingerprint(schema)] = reader
    return readers


def _parsed(schema: dict[str, Any]) -> Any:
    """Without logical types: an event keeps its time as an integer of microseconds."""
    return fastavro.parse_schema(_without_logical_types(schema), named_schemas={})


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(value) for value in schema]
    return schema
