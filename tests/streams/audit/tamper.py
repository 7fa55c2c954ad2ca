"""Tampering with an archive, as somebody might who can write to it: what was done, where, and what must show it.

Every act is drawn from a seeded generator. The acts come in three kinds, by what must report them: `verify` alone, the
heads that were kept elsewhere, or `replay`.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

import fastavro

from eventlog.reader import LogRecord
from schemas.codec import decode, encode
from schemas.pool import (
    BoundaryOpened,
    PoolMaterialized,
    SeedSettled,
    Settlement,
    TaskInjected,
    TaskProbed,
    TaskRetired,
)
from schemas.rollouts import RolloutFinished, TaskMeasured
from schemas.rules import canonical_json
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed, Zone
from schemas.topics import Topic
from streams.archive.container import CODEC, PARSED
from streams.archive.manifest import MANIFEST, read_manifest
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions, read_partition
from streams.archive.segment import Segment, read_segment
from streams.archive.worker import keep_schemas
from tests.archives import seal

SEGMENT_RECORDS = 6


class Shown(StrEnum):
    """What must report an act."""

    VERIFY = "verify"
    HEADS = "heads"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class Tampering:
    """What was done. files: where it may be reported, names within the partition's folder. first, last: the offsets
    concerned. exact: an offset that a fault must begin at, where the records show it."""

    act: str
    shown: Shown
    topic: Topic
    partition: int
    files: tuple[str, ...]
    first: int
    last: int
    exact: int | None = None
    kind: str = ""

    @property
    def folder(self) -> str:
        return f"{self.topic.value}/{self.partition:05d}"


def resegmented(source: Path, target: Path, records: int = SEGMENT_RECORDS) -> None:
    """The same records in segments of so many."""
    keep_schemas(target)
    for topic in Topic:
        for partition in archived_partitions(source, topic):
            seal(target, topic, partition, read_partition(source, topic, partition), records)


class Partition:
    """A partition's files, to be changed and put back."""

    def __init__(self, archive: Path, topic: Topic, partition: int) -> None:
        self.topic, self.partition = topic, partition
        self.folder = partition_folder(archive, topic, partition)
        self.segments: list[Segment] = list(read_manifest(self.folder).segments)
        self._kept = {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def records(self, number: int) -> list[LogRecord]:
        """Of a segment."""
        segment = self.segments[number]
        return list(read_segment(self.folder / segment.file, segment, self.partition))

    def write(self, number: int, records: Sequence[LogRecord]) -> None:
        """Replaces a segment's file and leaves the manifest."""
        (self.folder / self.segments[number].file).write_bytes(container(self.topic, self.partition, records))

    def seal(self, number: int, records: Sequence[LogRecord]) -> None:
        """Replaces a segment's file and seals it and the whole chain anew."""
        data = container(self.topic, self.partition, records)
        (self.folder / self.segments[number].file).write_bytes(data)
        changed = replace(self.segments[number], size=len(data), sha256=hashlib.sha256(data).hexdigest())
        self.segments[number] = changed
        self.write_manifest(self.segments)

    def write_manifest(self, segments: Sequence[Segment]) -> None:
        """A manifest of these segments whose chain holds."""
        previous, lines = "", []
        for segment in segments:
            lines.append(canonical_json({**asdict(segment), "previous": previous}) + "\n")
            previous = segment.sha256
        self.write_lines(lines)

    def lines(self) -> list[str]:
        return (self.folder / MANIFEST).read_text().splitlines(keepends=True)

    def write_lines(self, lines: Sequence[str]) -> None:
        (self.folder / MANIFEST).write_text("".join(lines))

    def put_back(self) -> None:
        """As it was when this was made."""
        for path in self.folder.iterdir():
            if path.name not in self._kept:
                path.unlink()
        for name, data in self._kept.items():
            if not (self.folder / name).exists() or (self.folder / name).read_bytes() != data:
                (self.folder / name).write_bytes(data)

    def done(self, act: str, shown: Shown, number: int, **more: Any) -> Tampering:
        """The act, in a segment."""
        segment = self.segments[number]
        values: dict[str, Any] = {"files": (segment.file,), "first": segment.first, "last": segment.last, **more}
        return Tampering(act, shown, self.topic, self.partition, **values)


def container(topic: Topic, partition: int, records: Sequence[LogRecord]) -> bytes:
    """The file of any records at all, in whatever order."""
    out = io.BytesIO()
    rows = [
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in record.headers],
        }
        for record in records
    ]
    metadata = {"rods.topic": f"rods.{topic.value}", "rods.partition": str(partition)}
    fastavro.writer(out, PARSED, rows, codec=CODEC, sync_marker=b"s" * 16, metadata=metadata)
    return out.getvalue()


Act = Callable[[Partition, Random], Tampering]


def flip_bit_of_segment(place: Partition, rng: Random) -> Tampering:
    number = rng.randrange(len(place.segments))
    _flip(place.folder / place.segments[number].file, rng)
    return place.done("flip a bit of a segment", Shown.VERIFY, number)


def flip_bit_of_manifest(place: Partition, rng: Random) -> Tampering:
    ends = [len(line) for line in place.lines()]
    position = _flip(place.folder / MANIFEST, rng)
    number = next(n for n in range(len(place.segments)) if position < sum(ends[: n + 1]) or n + 1 == len(ends))
    after = min(number + 1, len(place.segments) - 1)
    files = (MANIFEST, place.segments[number].file, place.segments[after].file)
    return place.done(
        "flip a bit of a manifest", Shown.VERIFY, number, files=files, last=place.segments[after].last + 1
    )


def truncate_segment(place: Partition, rng: Random) -> Tampering:
    number = rng.randrange(len(place.segments))
    path = place.folder / place.segments[number].file
    path.write_bytes(path.read_bytes()[: rng.randrange(place.segments[number].size)])
    return place.done("truncate a segment", Shown.VERIFY, number)


def drop_segment(place: Partition, rng: Random) -> Tampering:
    number = rng.randrange(len(place.segments))
    (place.folder / place.segments[number].file).unlink()
    return place.done("drop a segment", Shown.VERIFY, number)


def duplicate_segment(place: Partition, rng: Random) -> Tampering:
    number = rng.randrange(len(place.segments))
    first = place.segments[-1].last + 1
    name = f"{first:020d}-{first + place.segments[number].records - 1:020d}.avro"
    (place.folder / name).write_bytes((place.folder / place.segments[number].file).read_bytes())
    return place.done("duplicate a segment", Shown.VERIFY, number, files=(name,), first=first, last=first)


def enter_segment_twice(place: Partition, rng: Random) -> Tampering:
    """With its line, and the chain sealed anew."""
    number = rng.randrange(len(place.segments))
    place.write_manifest([*place.segments[: number + 1], *place.segments[number:]])
    return place.done("enter a segment twice", Shown.VERIFY, number, files=(MANIFEST,))


def swap_segments(place: Partition, rng: Random) -> Tampering:
    one, other = sorted(rng.sample(range(len(place.segments)), 2))
    paths = [place.folder / place.segments[number].file for number in (one, other)]
    data = [path.read_bytes() for path in paths]
    paths[0].write_bytes(data[1])
    paths[1].write_bytes(data[0])
    return place.done("swap two segments", Shown.VERIFY, one)


def cut_out_segment(place: Partition, rng: Random) -> Tampering:
    """File and line, and the chain sealed anew; not the last, which is `cut_tail`."""
    number = rng.randrange(len(place.segments) - 1)
    (place.folder / place.segments[number].file).unlink()
    place.write_manifest([*place.segments[:number], *place.segments[number + 1 :]])
    return place.done("cut out a segment", Shown.VERIFY, number, files=(MANIFEST,), exact=place.segments[number].first)


def swap_lines(place: Partition, rng: Random) -> Tampering:
    number = rng.randrange(len(place.segments) - 1)
    lines = place.lines()
    lines[number : number + 2] = reversed(lines[number : number + 2])
    place.write_lines(lines)
    return place.done("swap two lines", Shown.VERIFY, number, files=(MANIFEST,), last=place.segments[number + 1].last)


def drop_record(place: Partition, rng: Random, sealed: bool = False) -> Tampering:
    number, at, records = _record(place, rng)
    del records[at]
    return _rewritten(place, number, records, sealed, "drop a record", place.segments[number].first + at)


def duplicate_record(place: Partition, rng: Random, sealed: bool = False) -> Tampering:
    number, at, records = _record(place, rng)
    records.insert(at, records[at])
    return _rewritten(place, number, records, sealed, "duplicate a record", place.segments[number].first + at)


def swap_records(place: Partition, rng: Random, sealed: bool = False) -> Tampering:
    number, _, records = _record(place, rng, least=2)
    at, other = sorted(rng.sample(range(len(records)), 2))
    records[at], records[other] = records[other], records[at]
    return _rewritten(place, number, records, sealed, "swap two records", place.segments[number].first + at)


def truncate_record(place: Partition, rng: Random, sealed: bool = False) -> Tampering:
    number, at, records = _record(place, rng)
    value = records[at].value or b""
    records[at] = records[at]._replace(value=value[: rng.randrange(len(value))])
    return _rewritten(place, number, records, sealed, "truncate a record", records[at].offset)


def _resealed(act: Callable[[Partition, Random, bool], Tampering]) -> Act:
    return lambda place, rng: act(place, rng, True)


def edit_value(place: Partition, rng: Random) -> Tampering:
    """Of an attempt, to one that cannot be."""
    number, at, records = _record(place, rng, RolloutFinished)
    event = decode(records[at].value or b"")
    slot = rng.randrange(len(event.slots))
    impossible: list[dict[str, Any]] = [
        {"turns_passed": event.turns_total + 1},
        {"turns_passed": -1},
        {"turns_total": event.turns_total + 1},
        {"status": "done"},
        {"reason": "tired", "status": "failed"},
        {"tokens": -5},
        {"trajectory": "0" * 63},
        {"outcomes": (True,) * (event.turns_total + 1)},
    ]
    slots = list(event.slots)
    slots[slot] = replace(slots[slot], **rng.choice(impossible))
    records[at] = records[at]._replace(value=encode(replace(event, slots=tuple(slots))))
    return _rewritten(place, number, records, True, "edit a value beyond its range", records[at].offset)


def edit_fact(place: Partition, rng: Random) -> Tampering:
    """Of an attempt, to one that could be, with the whole chain sealed anew."""
    number, at, records = _record(place, rng, RolloutFinished)
    event = decode(records[at].value or b"")
    slots = list(event.slots)
    slot = rng.randrange(len(slots))
    slots[slot] = replace(slots[slot], latency=slots[slot].latency + rng.randrange(1, 1000))
    records[at] = records[at]._replace(value=encode(replace(event, slots=tuple(slots))))
    place.seal(number, records)
    last = place.segments[-1].last
    return place.done("edit a fact and seal all anew", Shown.HEADS, number, files=(MANIFEST,), last=last)


def cut_tail(place: Partition, rng: Random) -> Tampering:
    """The newest segments together with their entries."""
    kept = rng.randrange(len(place.segments))
    for segment in place.segments[kept:]:
        (place.folder / segment.file).unlink()
    place.write_manifest(place.segments[:kept])
    return place.done("cut off the tail", Shown.HEADS, kept, files=(MANIFEST,), last=place.segments[-1].last)


def edit_decision(place: Partition, rng: Random) -> Tampering:
    """Of measure, select or the pool, to another that could be, with the whole chain sealed anew."""
    number, at, records = _record(place, rng, rng.choice(DECISIONS))
    event = decode(records[at].value or b"")
    records[at] = records[at]._replace(value=encode(_other_decision(event, rng)))
    place.seal(number, records)
    return replace(
        place.done("edit a decision and seal all anew", Shown.REPLAY, number, exact=records[at].offset),
        kind=type(event).KIND,
    )


DECISIONS = (
    TaskMeasured,
    PartitionSealed,
    SelectionClosed,
    BoundarySeedSelected,
    BoundaryOpened,
    TaskInjected,
    TaskRetired,
    TaskProbed,
    PoolMaterialized,
    SeedSettled,
)
DECIDED_ON = (Topic.MEASUREMENTS, Topic.SEALS, Topic.SEEDS, Topic.POOL)


def _other_decision(event: Any, rng: Random) -> Any:
    if isinstance(event, TaskMeasured):
        zones = [zone.value for zone in Zone if zone.value != event.zone]
        return replace(event, zone=rng.choice(zones)) if event.zone else replace(event, visits=event.visits + 1)
    if isinstance(event, PartitionSealed):
        if not event.groups:
            return replace(event, digest=_other_digest(event.digest, rng))
        groups = list(event.groups)
        at = rng.randrange(len(groups))
        zones = [zone.value for zone in Zone if zone.value != groups[at].zone]
        groups[at] = replace(groups[at], zone=rng.choice(zones))
        return replace(event, groups=tuple(groups))
    if isinstance(event, SelectionClosed):
        if event.seeds:
            return replace(event, seeds=event.seeds[:-1])
        return replace(event, quota=event.quota + 1)
    if isinstance(event, BoundarySeedSelected):
        return replace(event, phi=event.phi / 2 + 0.1)
    if isinstance(event, BoundaryOpened):
        digest = _other_digest(event.selection_digest, rng)
        changes: list[dict[str, Any]] = [{"selection_digest": digest}] if event.epoch else [{"epoch": 1}]
        changes += [{"last_step": event.last_step + 1}, {"last_seed_step": event.last_seed_step + 1}]
        return replace(event, **rng.choice(changes))
    if isinstance(event, TaskProbed):
        return replace(event, boundary=not event.boundary)
    if isinstance(event, SeedSettled):
        outcomes = [outcome.value for outcome in Settlement if outcome != event.outcome]
        changes = [{"outcome": rng.choice(outcomes)}, {"variants": event.variants + 1}, {"step": event.step + 1}]
        return replace(event, **rng.choice(changes))
    if isinstance(event, TaskInjected):
        return replace(event, returned=not event.returned)
    if isinstance(event, TaskRetired):
        return replace(event, visits=event.visits + 1)
    return replace(event, digest=_other_digest(event.digest, rng))


def _other_digest(digest: str, rng: Random) -> str:
    return hashlib.sha256(f"{digest}{rng.random()}".encode()).hexdigest()


ACTS: tuple[Act, ...] = (
    flip_bit_of_segment,
    flip_bit_of_manifest,
    truncate_segment,
    drop_segment,
    duplicate_segment,
    enter_segment_twice,
    swap_segments,
    cut_out_segment,
    swap_lines,
    drop_record,
    duplicate_record,
    swap_records,
    truncate_record,
    _resealed(drop_record),
    _resealed(duplicate_record),
    _resealed(swap_records),
    _resealed(truncate_record),
    edit_value,
    edit_fact,
    cut_tail,
    edit_decision,
)
"""Every act, with what must report it."""

_NEEDS_ROLLOUTS: tuple[Act, ...] = (edit_value, edit_fact)


def tampered(archive: Path, seed: int, acts: Sequence[Act] = ACTS) -> tuple[Partition, Tampering]:
    """Does what a seed draws; the partition, to put back, and what was done."""
    rng = Random(seed)
    act = acts[seed % len(acts)]
    topics = list(Topic)
    if act in _NEEDS_ROLLOUTS:
        topics = [Topic.ROLLOUTS]
    elif act is edit_decision:
        topics = list(DECIDED_ON)
    while True:
        topic = rng.choice(topics)
        place = Partition(archive, topic, rng.choice(archived_partitions(archive, topic)))
        if len(place.segments) < (1 if act is edit_decision else 2):
            continue
        try:
            return place, act(place, rng)
        except _NothingToChangeError:
            continue


class _NothingToChangeError(Exception):
    """The partition holds no record of the wanted type."""


def _record(place: Partition, rng: Random, *types: type[Any], least: int = 1) -> tuple[int, int, list[LogRecord]]:
    """A segment's number, a record's position in it, and its records."""
    found = []
    for number in range(len(place.segments)):
        records = place.records(number)
        if len(records) >= least:
            found += [
                (number, at, records)
                for at, record in enumerate(records)
                if not types or type(decode(record.value or b"")) in types
            ]
    if not found:
        raise _NothingToChangeError
    number, at, records = rng.choice(found)
    return number, at, list(records)


def _rewritten(
    place: Partition, number: int, records: list[LogRecord], sealed: bool, act: str, exact: int
) -> Tampering:
    (place.seal if sealed else place.write)(number, records)
    name = f"{act} and seal anew" if sealed else act
    return place.done(name, Shown.VERIFY, number, exact=exact)


def _flip(path: Path, rng: Random) -> int:
    data = bytearray(path.read_bytes())
    position = rng.randrange(len(data))
    data[position] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(data))
    return position
