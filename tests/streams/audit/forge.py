"""Archives with an edited record, sealed again from the edit on: what only a replay can find."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from eventlog.reader import LogRecord
from schemas.codec import decode, encode
from schemas.errors import UndecodableError
from schemas.topics import Topic
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions, read_partition
from tests.archives import seal

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "archives"
DROP = object()
Edit = Callable[[Any], Any]


class Place(NamedTuple):
    """Where a record stands."""

    topic: Topic
    partition: int
    offset: int


def forge(archive: Path, target: Path, place: Place, edit: Edit) -> Path:
    """The archive with one event edited. An edit to `DROP` leaves the event out and closes the gap."""
    shutil.copytree(archive, target, dirs_exist_ok=True)
    topic, partition, at = place
    shutil.rmtree(partition_folder(target, topic, partition))
    records = list(read_partition(archive, topic, partition))
    edited = edit(decode(records[at].value or b""))
    if edited is DROP:
        records[at:] = [record._replace(offset=record.offset - 1) for record in records[at + 1 :]]
    else:
        records[at] = records[at]._replace(value=edited if isinstance(edited, bytes) else encode(edited))
    seal(target, topic, partition, records)
    return target


def insert(archive: Path, target: Path, place: Place, value: bytes) -> Path:
    """The archive with one record more, before the one that stands at a place, or at its partition's end."""
    topic, partition, at = place
    shutil.copytree(archive, target, dirs_exist_ok=True)
    shutil.rmtree(partition_folder(target, topic, partition))
    records = list(read_partition(archive, topic, partition))
    another = LogRecord(topic.named("rods."), partition, 0, 0, b"run", value, ())
    grown = enumerate([*records[:at], another, *records[at:]])
    seal(target, topic, partition, [record._replace(offset=offset) for offset, record in grown])
    return target


def places(archive: Path, topic: Topic, wanted: Callable[[Any], bool]) -> list[tuple[Place, Any]]:
    """The events of a topic that are wanted, and where they stand."""
    return [(place, event) for place, event in decoded(archive, topic) if wanted(event)]


def decoded(archive: Path, topic: Topic) -> Iterator[tuple[Place, Any]]:
    """The events of a topic. What is none is passed over, as every reader does."""
    for partition in archived_partitions(archive, topic):
        for record in read_partition(archive, topic, partition):
            with suppress(UndecodableError):
                yield Place(topic, partition, record.offset), decode(record.value or b"")
