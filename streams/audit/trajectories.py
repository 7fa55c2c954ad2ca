"""Which attempts that counted have no trajectory in the log: it is kept shortest, and only training needs it."""

import io
from typing import Any

import fastavro

from schemas.codec import HEADER_BYTES, kind_of_frame, schema_text, schema_versions
from schemas.rollouts import TrajectoryRecorded
from schemas.topics import Topic
from streams.audit.source import LogSource

_WANTED = ("group", "execution", "attempt")


def trajectories_of(source: LogSource, partition: int) -> set[tuple[str, str, int]]:
    """Group, execution and attempt of every trajectory of a partition; nothing heavy is decoded."""
    found: set[tuple[str, str, int]] = set()
    if partition not in source.partitions(Topic.TRAJECTORIES):
        return found
    writer = fastavro.parse_schema(schema_text(TrajectoryRecorded.KIND, schema_versions(TrajectoryRecorded.KIND)[0]))
    head = _head_of(writer)
    for record in source.records(Topic.TRAJECTORIES, partition):
        value = record.value or b""
        if kind_of_frame(value) == TrajectoryRecorded.KIND:
            body = io.BytesIO(value)
            body.seek(HEADER_BYTES)
            row: Any = fastavro.schemaless_reader(body, head)
            found.add((row["group"], row["execution"], row["attempt"]))
    return found


def _head_of(schema: Any) -> Any:
    """The schema of the record's first fields: an Avro record is its fields one after the other."""
    fields = [{"name": field["name"], "type": field["type"]} for field in schema["fields"][: len(_WANTED)]]
    assert tuple(field["name"] for field in fields) == _WANTED
    return fastavro.parse_schema({"type": "record", "name": "TrajectoryHead", "fields": fields}, named_schemas={})
