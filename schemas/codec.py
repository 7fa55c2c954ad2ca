"""Events to bytes and back: Avro single-object encoding.

Frame (Avro specification 1.11, single-object encoding): C3 01, the CRC-64-AVRO fingerprint of the writer's schema in
little-endian order, the body. Every version of a schema under `schemas/avro/` stays readable; events are written in
the newest one. Decoding accepts at most `MAX_EVENT_BYTES` and refuses trailing bytes.
"""

import io
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import fastavro
import fastavro.schema

from schemas.catalogue import BY_KIND
from schemas.derive import NAMESPACE, Convert, avro_schema, decoder, encoder, field_decoders
from schemas.envelope import MAX_REMEMBERED, RECURRING, Event
from schemas.errors import SchemaError, UndecodableError, UnknownFingerprintError

MAGIC = b"\xc3\x01"
HEADER_BYTES = 10
MAX_EVENT_BYTES = 8 * 1024 * 1024
AVRO_FOLDER = Path(__file__).parent / "avro"
_LONG = {"type": "long"}


Part = Callable[[Event], bytes]
"""Encodes some consecutive fields of an event: an Avro record is its fields one after the other."""


class _Writer(NamedTuple):
    header: bytes
    parts: tuple[Part, ...]


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
    return _encoded(event, _writers()[event.KIND])


def encode_like(event: Event, frame: bytes) -> bytes:
    """The event's frame in the schema version of another frame, so that what is derived anew compares with an old log
    byte by byte. Raises UnknownFingerprintError, and SchemaError where the frame is of another kind."""
    reader = _reader_of(frame)
    if reader.kind != event.KIND:
        raise SchemaError(f"{event.KIND} cannot be encoded as {reader.kind}")
    return _encoded(event, _writer(reader.kind, reader.version))


def _encoded(event: Event, writer: _Writer) -> bytes:
    try:
        return b"".join([writer.header, *[part(event) for part in writer.parts]])
    except (TypeError, ValueError, OverflowError, AttributeError, struct.error) as error:
        raise SchemaError(f"{event.KIND} cannot be encoded: {error}") from error


class PlainEvent(NamedTuple):
    """An event as plain values. version: the one it was written in."""

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


Expect = Callable[[dict[str, Any]], Sequence[Any]]
"""From the fields before a recurring one to the items that are likely to come first in it."""


def decode_expecting(data: bytes, name: str, expected: Expect) -> Any:
    """As `decode`, for an event with a recurring field: where its bytes are those of the expected items, these are
    taken and not decoded again. Same errors."""
    reader = _reader_of(data)
    try:
        found = _with_expected(data, reader, name, expected)
    except Exception:  # noqa: BLE001  whatever is wrong with it, `decode` says so
        found = None
    return decode(data) if found is None else found


def _with_expected(data: bytes, reader: _Reader, name: str, expected: Expect) -> Any:
    """The event; None where its field holds something else, or its version is not the newest."""
    if reader.reader is not None or len(data) > MAX_EVENT_BYTES:
        return None
    parts, event_type = _parts_around(reader.kind, reader.version, name), BY_KIND[reader.kind]
    body = io.BytesIO(data)
    body.seek(HEADER_BYTES)
    record = _values(body, parts.before, parts.decoders)
    count: Any = fastavro.schemaless_reader(body, _LONG)
    items = tuple(expected(record)[:count]) if count else ()
    frames = b"".join(map(_item_encoder(reader.kind, reader.version, name), items)) + (b"\0" if count else b"")
    if len(items) != count or not data.startswith(frames, body.tell()):
        return None
    body.seek(len(frames), io.SEEK_CUR)
    event = event_type(**record, **{name: items}, **_values(body, parts.after, parts.decoders))
    return event if body.tell() == len(data) else None


def _values(body: io.BytesIO, schema: Any, decoders: Mapping[str, Convert]) -> dict[str, Any]:
    record: Any = fastavro.schemaless_reader(body, schema)
    return {field: decoders[field](value) if field in decoders else value for field, value in record.items()}


def _reader_of(frame: bytes) -> _Reader:
    if len(frame) < HEADER_BYTES or frame[:2] != MAGIC:
        raise UndecodableError("not an Avro single-object frame")
    reader = _readers().get(frame[2:HEADER_BYTES])
    if reader is None:
        raise UnknownFingerprintError(frame[2:HEADER_BYTES])
    return reader


def _read(data: bytes) -> tuple[_Reader, Any]:
    if len(data) > MAX_EVENT_BYTES:
        raise UndecodableError(f"an event of {len(data)} bytes exceeds the limit of {MAX_EVENT_BYTES}")
    reader = _reader_of(data)
    body = io.BytesIO(data)
    body.seek(HEADER_BYTES)
    try:
        record = fastavro.schemaless_reader(body, reader.writer, reader.reader)
    except Exception as error:
        raise UndecodableError(f"{reader.kind} does not decode: {type(error).__name__}") from error
    if body.tell() != len(data):
        raise UndecodableError(f"{reader.kind} has {len(data) - body.tell()} trailing bytes")
    return reader, record


def leading(frame: bytes, through: str) -> PlainEvent:
    """The first fields of an event, up to and with one, in the version that wrote it; the rest is not looked at.

    For scans that need little of a long event. Raises UndecodableError, UnknownFingerprintError."""
    reader = _reader_of(frame)
    body = io.BytesIO(frame)
    body.seek(HEADER_BYTES)
    try:
        record: Any = fastavro.schemaless_reader(body, _leading_schema(reader.kind, reader.version, through))
    except Exception as error:
        raise UndecodableError(f"{reader.kind} does not decode: {type(error).__name__}") from error
    return PlainEvent(reader.kind, reader.version, record)


def consecutive(record_type: type[Any], **values: Any) -> bytes:
    """How consecutive fields of a record are encoded wherever it stands in a frame, to look for them in its bytes."""
    out, schema = io.BytesIO(), avro_schema(record_type)
    run = [field for field in schema["fields"] if field["name"] in values]
    fastavro.schemaless_writer(out, _fields_schema(record_type.__name__, run), values)
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
    return {kind: _writer(kind, schema_versions(kind)[-1]) for kind in BY_KIND}


@cache
def _writer(kind: str, version: int) -> _Writer:
    schema, event_type = schema_text(kind, version), BY_KIND[kind]
    recurring = {field.name for field in fields(event_type) if field.metadata.get(RECURRING)}
    parts: list[Part] = []
    for is_recurring, run in groupby(schema["fields"], lambda field: field["name"] in recurring):
        if is_recurring:
            parts += [_recurring_part(kind, version, field["name"]) for field in run]
        else:
            parts.append(_plain_part(event_type, list(run)))
    return _Writer(MAGIC + fingerprint(schema), tuple(parts))


def _plain_part(event_type: type[Any], run: list[Any]) -> Part:
    convert = encoder(event_type, [field["name"] for field in run])
    schema = _fields_schema(event_type.KIND, run)

    def encoded(event: Event) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, convert(event))
        return out.getvalue()

    return encoded


def _recurring_part(kind: str, version: int, name: str) -> Part:
    item = _item_encoder(kind, version, name)

    def encoded(event: Event) -> bytes:
        items = getattr(event, name)
        out = io.BytesIO()
        if items:
            fastavro.schemaless_writer(out, _LONG, len(items))
            out.write(b"".join(map(item, items)))
        fastavro.schemaless_writer(out, _LONG, 0)
        return out.getvalue()

    return encoded


@cache
def _item_encoder(kind: str, version: int, name: str) -> Callable[[Any], bytes]:
    """Encodes an item of a recurring field, once as long as it is remembered."""
    named: dict[str, Any] = {}
    fastavro.parse_schema(_without_logical_types(schema_text(kind, version)), named_schemas=named)
    item_type = get_args(get_type_hints(BY_KIND[kind])[name])[0]
    convert, schema = encoder(item_type), named[f"{NAMESPACE}.{item_type.__name__}"]

    @lru_cache(maxsize=MAX_REMEMBERED)
    def encoded(item: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, convert(item))
        return out.getvalue()

    return encoded


class _Around(NamedTuple):
    """The schemas of the fields before a recurring one and after it, and how their values are decoded."""

    before: Any
    after: Any
    decoders: dict[str, Convert]


@cache
def _parts_around(kind: str, version: int, name: str) -> _Around:
    run = schema_text(kind, version)["fields"]
    at = [field["name"] for field in run].index(name)
    return _Around(_fields_schema(kind, run[:at]), _fields_schema(kind, run[at + 1 :]), field_decoders(BY_KIND[kind]))


@cache
def _leading_schema(kind: str, version: int, through: str) -> Any:
    run = schema_text(kind, version)["fields"]
    return _fields_schema(kind, run[: [field["name"] for field in run].index(through) + 1])


def _fields_schema(kind: str, run: list[Any]) -> Any:
    return _parsed({"type": "record", "name": kind, "namespace": NAMESPACE, "fields": run})


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
