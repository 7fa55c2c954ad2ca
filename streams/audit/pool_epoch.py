"""The pool at an epoch, from the log alone: what a boundary needs is decoded, and no more."""

import io
from collections.abc import Iterator
from typing import Any

import fastavro

from schemas.codec import HEADER_BYTES, decode, kind_of_frame, schema_text
from schemas.errors import UndecodableError
from schemas.pool import BoundaryOpened, PoolMaterialized
from schemas.seals import PartitionSealed, SelectionClosed
from schemas.topics import Topic
from streams.audit.errors import AuditError
from streams.audit.source import LogSource, events
from streams.pool.replay import ReplayedPool, pool_at

_HEAD = ("epoch", "step")


def pool_of(source: LogSource, epoch: int | None = None) -> ReplayedPool:
    """The pool after an epoch, by default the last one. Raises AuditError where the log holds none."""
    chosen = last_epoch(source) if epoch is None else epoch
    pool = ((offset, event) for offset, _, event in events(source, Topic.POOL, 0))
    try:
        found = pool_at(pool, lambda opened: _seals_of(source, opened), chosen) if chosen is not None else None
    except (TypeError, ValueError) as error:
        raise AuditError(f"the pool of epoch {chosen} does not follow from the log: {error}") from error
    if found is None:
        raise AuditError("the log holds no pool" if epoch is None else f"the log holds no pool of epoch {epoch}")
    return found


def last_epoch(source: LogSource) -> int | None:
    """The epoch of the last PoolMaterialized; None where there is none."""
    last = b""
    for record in source.records(Topic.POOL, 0) if source.partitions(Topic.POOL) else ():
        value = record.value or b""
        if kind_of_frame(value) == PoolMaterialized.KIND:
            last = value
    return int(decode(last).epoch) if last else None


def _seals_of(source: LogSource, opened: BoundaryOpened) -> Iterator[tuple[int, Any]]:
    """The seals and selections of an epoch up to its last step. Frames of other epochs are looked at, not decoded."""
    head: Any = {kind: _head_of(kind) for kind in (PartitionSealed.KIND, SelectionClosed.KIND)}
    for record in source.records(Topic.SEALS, 0) if source.partitions(Topic.SEALS) else ():
        value = record.value or b""
        kind = kind_of_frame(value)
        if kind not in head:
            continue
        body = io.BytesIO(value)
        body.seek(HEADER_BYTES)
        try:
            row: Any = fastavro.schemaless_reader(body, head[kind])
            if row["epoch"] == opened.epoch:
                yield record.offset, decode(value)
        except (EOFError, UndecodableError):
            continue
        if kind == SelectionClosed.KIND and row["step"] >= opened.last_step:
            return


def _head_of(kind: str) -> Any:
    """The schema of an event's first fields: an Avro record is its fields one after the other, in every version."""
    fields = schema_text(kind, 1)["fields"][: len(_HEAD)]
    assert tuple(field["name"] for field in fields) == _HEAD
    return fastavro.parse_schema({"type": "record", "name": f"{kind}Head", "fields": fields}, named_schemas={})
