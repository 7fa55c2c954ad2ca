"""The tables of the warehouse, derived from the event types: one a topic, one row an event.

Every row has its place in the log, the envelope, and the event as canonical JSON in `body`, without the token ids and
raw bytes that the archive keeps. Each plain field of the topic's events is a column too, and each list field `x` a
column `x_count`, NULL where an event has no such field. An equal record gives an equal row, whenever it is read:
reading twice changes nothing once rows are merged (or read with FINAL).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, get_origin, get_type_hints

from eventlog.reader import LogRecord
from schemas.catalogue import BY_KIND
from schemas.codec import decode
from schemas.derive import Convert, encoder
from schemas.envelope import Envelope, Event
from schemas.errors import UndecodableError
from schemas.rules import canonical_json
from schemas.topics import KINDS, Topic

UNDECODABLE = "undecodable"
_LATEST_MICROS = 4_102_444_800_000_000
_SYMBOLS = frozenset({"zone", "purpose", "category", "stage", "reason", "rule", "outcome", "backbone", "task_set"})
_LEFT_TO_THE_ARCHIVE = frozenset({"token_ids", "logprobs", "loss_mask", "value"})
_ONLY_IN_BODY = frozenset({"rules", "messages", "detail", "initial_state"})
_TYPES: dict[Any, str] = {int: "Nullable(Int64)", float: "Nullable(Float64)", bool: "Nullable(Bool)"}

_PLACE_AND_ENVELOPE = {
    "topic": "LowCardinality(String)",
    "partition": "UInt32",
    "offset": "UInt64",
    "timestamp": "DateTime64(3, 'UTC')",
    "kind": "LowCardinality(String)",
    "event_id": "String",
    "run_id": "LowCardinality(String)",
    "occurred_at": "DateTime64(6, 'UTC')",
    "producer": "LowCardinality(String)",
    "causation_id": "Nullable(String)",
    "correlation_id": "Nullable(String)",
    "body": "String",
}

Row = list[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """columns: names to ClickHouse types, in the order of a row."""

    topic: Topic
    name: str
    columns: dict[str, str]

    def create(self) -> str:
        """The statement that makes the table where it is missing."""
        columns = ", ".join(f"`{name}` {kind}" for name, kind in self.columns.items())
        order = "ORDER BY (topic, partition, offset)"
        return f"CREATE TABLE IF NOT EXISTS `{self.name}` ({columns}) ENGINE = ReplacingMergeTree {order}"

    def extend(self) -> str:
        """The statement that adds the columns of newer event types."""
        added = ", ".join(f"ADD COLUMN IF NOT EXISTS `{name}` {kind}" for name, kind in self.columns.items())
        return f"ALTER TABLE `{self.name}` {added}"


@cache
def table_of(topic: Topic) -> Table:
    """The table of a topic; its name is the topic's, with an underscore for a dash."""
    columns = dict(_PLACE_AND_ENVELOPE)
    for kind in sorted(KINDS[topic]):
        for field in _typed_fields(BY_KIND[kind]):
            if columns.setdefault(field.column, field.type) != field.type:
                raise TypeError(f"{topic}: the field {field.name} has two types")
    return Table(topic, topic.value.replace("-", "_"), columns)


def row_of(topic: Topic, record: LogRecord) -> Row:
    """The row of a record. Bytes that are no event give a row of the kind ``undecodable``; an event that the topic does
    not carry fills none of the columns that its table has for others.

    Raises UnknownFingerprintError: a newer writer's event, to be read by a newer sink.
    """
    table = table_of(topic)
    try:
        event = decode(record.value or b"")
        values = _event_values(event)
        if not topic.carries(event.KIND):
            values = {name: value for name, value in values.items() if name in _PLACE_AND_ENVELOPE}
    except UndecodableError as error:
        values = {"kind": UNDECODABLE, "body": canonical_json({"reason": str(error)})}
    values |= {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": max(0, min(record.timestamp, _LATEST_MICROS // 1000)),
    }
    return [values.get(column, _EMPTY.get(column)) for column in table.columns]


_EMPTY: dict[str, Any] = {"event_id": "", "run_id": "", "producer": "", "occurred_at": 0}


@dataclass(frozen=True, slots=True)
class _Field:
    """A column's source. parent: the record within the event that holds the field, such as a task's definition."""

    parent: str | None
    name: str
    column: str
    type: str
    counted: bool

    def of(self, record: dict[str, Any]) -> Any:
        value = (record[self.parent] if self.parent else record)[self.name]
        return len(value) if self.counted else value


def _typed_fields(event_type: type[Any], parent: str | None = None) -> Iterator[_Field]:
    hints = get_type_hints(event_type)
    for name in (field.name for field in fields(event_type)):
        if name in _ONLY_IN_BODY | _LEFT_TO_THE_ARCHIVE or hints[name] is Envelope:
            continue
        column = f"{event_type.__name__.lower()}_{name}" if name in _PLACE_AND_ENVELOPE else name
        if get_origin(hints[name]) is tuple:
            yield _Field(parent, name, f"{column}_count", _TYPES[int], counted=True)
        elif is_dataclass(hints[name]):
            yield from _typed_fields(hints[name], name)
        elif (kind := _column_type(name, hints[name])) is not None:
            yield _Field(parent, name, column, kind, counted=False)


def _column_type(name: str, hint: Any) -> str | None:
    plain = next((known for known in (bool, int, float, str) if hint in (known, known | None)), None)
    if plain is str:
        return "LowCardinality(Nullable(String))" if name in _SYMBOLS else "Nullable(String)"
    return _TYPES.get(plain)


@cache
def _encoder(kind: str) -> Convert:
    return encoder(BY_KIND[kind])


@cache
def _fields_of(kind: str) -> tuple[_Field, ...]:
    return tuple(_typed_fields(BY_KIND[kind]))


def _event_values(event: Event) -> dict[str, Any]:
    record = _encoder(event.KIND)(event)
    envelope = record.pop("envelope")
    for name in _LEFT_TO_THE_ARCHIVE:
        record.pop(name, None)
    values = {field.column: field.of(record) for field in _fields_of(event.KIND)}
    occurred_at = max(0, min(envelope["occurred_at"], _LATEST_MICROS))
    return {**values, **envelope, "occurred_at": occurred_at, "kind": event.KIND, "body": _body(record)}


def _body(record: dict[str, Any]) -> str:
    try:
        return canonical_json(record)
    except (ValueError, TypeError):
        return canonical_json(_plain(record))


def _plain(value: Any) -> Any:
    """Values that JSON has no word for: bytes in hexadecimal, numbers that are not finite as null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and not math.isfinite(value) else value
