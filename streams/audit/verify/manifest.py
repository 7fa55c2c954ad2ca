"""A partition's folder: its manifest line by line, and the files that should and should not be there."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from schemas.topics import Topic
from streams.archive.manifest import LOCK, MANIFEST, entry_of
from streams.archive.partition import partition_folder
from streams.archive.segment import Segment
from streams.audit.verify.fault import Fault, FaultKind

_MOST_MANIFEST_BYTES = 256 * 1024 * 1024
_TOPICS = tuple(Topic)


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """A partition within an archive, and how its faults are placed. within: the archive's folder within another one,
    which its faults are told of, with a slash behind it."""

    archive: Path
    topic: Topic
    partition: int
    within: str = ""

    @property
    def folder(self) -> Path:
        return partition_folder(self.archive, self.topic, self.partition)

    def fault(self, kind: FaultKind, name: str, offset: int | None, meaning: str, last: int | None = None) -> Fault:
        """A fault in a file of this partition."""
        order = (_TOPICS.index(self.topic), self.partition, -1 if offset is None else offset)
        folder = f"{self.within}{self.topic.value}/{self.partition:05d}"
        file = f"{folder}/{name}" if name else folder
        return Fault((len(_TOPICS), *order) if self.within else order, file, kind, offset, last, meaning)


@dataclass(slots=True)
class PartitionScan:
    """What a partition's folder holds: entries of the manifest in its order, those whose file is there, and faults."""

    place: PartitionPlace
    entries: list[Segment] = field(default_factory=list)
    present: list[Segment] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def end(self) -> int:
        """One past the last archived offset; 0 where there is none."""
        return self.entries[-1].last + 1 if self.entries else 0


def scan_partition(place: PartitionPlace) -> PartitionScan:
    """Reads the manifest and lists the files, without opening a segment."""
    scan = PartitionScan(place)
    if not place.folder.is_dir():
        scan.faults.append(place.fault(FaultKind.MISSING, "", None, "the partition's folder is missing"))
        return scan
    with _unchanging(place.folder):
        data = _manifest_bytes(scan)
        names = sorted(entry.name for entry in os.scandir(place.folder))
    _read_lines(scan, data)
    _compare_files(scan, names)
    return scan


def _manifest_bytes(scan: PartitionScan) -> bytes:
    path = scan.place.folder / MANIFEST
    try:
        if path.stat().st_size > _MOST_MANIFEST_BYTES:
            raise OSError(0, f"larger than {_MOST_MANIFEST_BYTES} bytes")
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        meaning = f"the manifest cannot be read: {error.strerror}"
        scan.faults.append(scan.place.fault(FaultKind.MANIFEST, MANIFEST, None, meaning))
        return b""


def _read_lines(scan: PartitionScan, data: bytes) -> None:
    *lines, tail = data.split(b"\n")
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            segment = entry_of(line)
        except ValueError:
            meaning = f"line {number} is no entry of a manifest"
            scan.faults.append(scan.place.fault(FaultKind.MANIFEST, MANIFEST, scan.end, meaning))
            continue
        scan.faults += _link_faults(scan, number, segment)
        if segment.file not in seen:
            scan.entries.append(segment)
        seen.add(segment.file)
    if tail:
        meaning = "the manifest ends in a torn line: an archiver was killed while it wrote, or the end was cut off"
        scan.faults.append(scan.place.fault(FaultKind.TORN, MANIFEST, scan.end, meaning))


def _link_faults(scan: PartitionScan, number: int, segment: Segment) -> Iterator[Fault]:
    """What is wrong between an entry and the one before it."""
    before = scan.entries[-1] if scan.entries else None
    expected = before.last + 1 if before else 0
    if segment.first > expected:
        meaning = f"offsets {expected} to {segment.first - 1} are missing before line {number}"
        yield scan.place.fault(FaultKind.GAP, MANIFEST, expected, meaning, segment.first - 1)
    elif segment.first < expected:
        meaning = f"line {number} begins at offset {segment.first}, which an earlier line holds already"
        yield scan.place.fault(FaultKind.DUPLICATE, MANIFEST, segment.first, meaning, min(segment.last, expected - 1))
    if segment.previous != (before.sha256 if before else ""):
        meaning = (
            f"line {number} names another segment as the one before it: that one was changed, or lines were removed"
        )
        first = before.first if before else 0
        yield scan.place.fault(FaultKind.CHAIN, MANIFEST, first, meaning, segment.last)


def _compare_files(scan: PartitionScan, names: list[str]) -> None:
    entered = {segment.file: segment for segment in scan.entries}
    for name in names:
        if name in entered or name in (MANIFEST, LOCK) or (name.startswith(".") and name.endswith(".tmp")):
            continue
        offset = int(name[:20]) if name[:20].isdigit() and name.isascii() else None
        meaning = "the manifest has no entry of this file"
        scan.faults.append(scan.place.fault(FaultKind.STRAY, name, offset, meaning))
    present = set(names)
    for segment in entered.values():
        if segment.file not in present:
            meaning = "the segment's file is missing"
            scan.faults.append(scan.place.fault(FaultKind.MISSING, segment.file, segment.first, meaning, segment.last))
    scan.present = [segment for segment in scan.entries if segment.file in present]


@contextmanager
def _unchanging(folder: Path) -> Iterator[None]:
    """No archiver seals meanwhile, where the archive has a lock that can be opened."""
    descriptor = -1
    with suppress(OSError):
        descriptor = os.open(folder / LOCK, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)
