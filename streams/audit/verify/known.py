"""What a log tells of itself before its records are held to it: whose run it is, its N, and known poison."""

from contextlib import suppress
from typing import Any, NamedTuple

from schemas.codec import decode_plain
from schemas.epochs import EpochOpened
from schemas.errors import SchemaError
from schemas.pool import EventRefused
from schemas.topics import Topic
from streams.audit.errors import AuditError
from streams.audit.load.source import LogSource

_MOST_PARTITIONS = 100_000
Refused = dict[tuple[Topic, int], frozenset[tuple[int, str]]]
"""By partition: offset and sha256 of what the dead letters tell of."""


class Named(NamedTuple):
    """run, partitions: None where the log does not tell them."""

    run: str | None
    partitions: int | None


def named(source: LogSource) -> Named:
    """The run and its N, as the first events of the log say."""
    run = partitions = None
    with suppress(AuditError, SchemaError):
        for record in source.records(Topic.EPOCHS, 0):
            kind, _, event = decode_plain(record.value or b"")
            run = run or event["envelope"]["run_id"]
            if kind == EpochOpened.KIND:
                partitions = event["partitions"]
                break
    return Named(run, partitions if partitions and 0 < partitions <= _MOST_PARTITIONS else None)


def refused(source: LogSource) -> Refused:
    """Known poison, as far as the dead letters can be read."""
    found: dict[tuple[Topic, int], set[tuple[int, str]]] = {}
    with suppress(AuditError):
        for record in source.records(Topic.DEAD_LETTERS, 0):
            event = _letter(record.value or b"")
            topic = next((topic for topic in Topic if event and event["topic"].endswith(topic.value)), None)
            if topic is not None:
                found.setdefault((topic, event["partition"]), set()).add((event["offset"], event["sha256"]))
    return {place: frozenset(letters) for place, letters in found.items()}


def _letter(value: bytes) -> dict[str, Any]:
    """A dead letter; nothing where the bytes are none."""
    try:
        kind, _, event = decode_plain(value)
    except SchemaError:
        return {}
    return event if kind == EventRefused.KIND else {}
