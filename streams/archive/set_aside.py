"""An archive taken back to a cut: what lies behind it is set aside, and the archive says so.

``set-aside/NNNN/`` gets, partition by partition, the manifest as it was and every segment that holds a record behind
the cut, so that nothing is lost and the old chain can still be checked. A segment that the cut goes through is sealed
anew up to it. ``set-aside.jsonl`` names cut, ends and old heads, each line with the sha256 of the one before; it is
written first, so that nothing leaves the archive unsaid. Cut short at any point, doing it again finishes it.

No archiver may be at work. Heads that were taken before no longer fit, as they should.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.rules import canonical_json
from schemas.topics import Topic
from streams.archive.cut import CUTS, Cut, place_name, read_cuts
from streams.archive.durable import locked, make_folder, replace_durably, sync, write_durably
from streams.archive.errors import ArchiveError
from streams.archive.manifest import LOCK, MANIFEST, Manifest, line_of, read_manifest
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions
from streams.archive.segment import Segment, encode_segment, read_segment, segment_name

SET_ASIDE = "set-aside"
LOG = "set-aside.jsonl"


@dataclass(frozen=True, slots=True)
class SetAside:
    """The result of a return to a cut. folder: None where nothing lay behind it."""

    cut: int
    records: int
    folder: Path | None


@dataclass(frozen=True, slots=True)
class _Behind:
    """A partition that goes on behind the cut's end."""

    topic: Topic
    partition: int
    end: int
    manifest: Manifest

    @property
    def next_offset(self) -> int:
        return self.manifest.next_offset or 0


def set_aside(archive: Path, cut: Cut) -> SetAside:
    """Takes the archive back to one of its cuts. Raises ArchiveError where the archive does not hold together."""
    cuts = read_cuts(archive)
    if cut not in cuts:
        raise ArchiveError(f"cut {cut.number} is none of the archive at {archive}")
    behind = [found for topic in Topic for found in _behind(archive, topic, cut)]
    if not behind and cuts[-1] == cut:
        return SetAside(cut.number, 0, None)
    target = _new_folder(archive)
    _say(archive, target.name, cut, behind)
    _keep(archive / CUTS, target / CUTS)
    sync(target)
    replace_durably(archive / CUTS, b"".join((archive / CUTS).read_bytes().splitlines(keepends=True)[: cut.number]))
    for found in behind:
        _take_back(archive, target, found)
    return SetAside(cut.number, sum(found.next_offset - found.end for found in behind), target)


def _behind(archive: Path, topic: Topic, cut: Cut) -> list[_Behind]:
    found = []
    for number in archived_partitions(archive, topic):
        manifest = read_manifest(partition_folder(archive, topic, number))
        if (manifest.next_offset or 0) > cut.end(topic, number):
            found.append(_Behind(topic, number, cut.end(topic, number), manifest))
    return found


def _new_folder(archive: Path) -> Path:
    parent = archive / SET_ASIDE
    parent.mkdir(exist_ok=True)
    number = 1 + max((int(path.name) for path in parent.glob("[0-9]*")), default=0)
    folder = parent / f"{number:04d}"
    folder.mkdir()
    sync(parent)
    return folder


def _say(archive: Path, name: str, cut: Cut, behind: list[_Behind]) -> None:
    """Appends the line."""
    path, told = archive / LOG, read_set_aside(archive)
    lines = path.read_bytes().splitlines(keepends=True) if told else []
    document = {
        "folder": f"{SET_ASIDE}/{name}",
        "cut": cut.number,
        "cut_sha256": cut.sha256,
        "partitions": {
            place_name(found.topic, found.partition): {
                "end": found.end,
                "next_offset": found.next_offset,
                "chain": found.manifest.chain,
            }
            for found in behind
        },
        "previous": hashlib.sha256(lines[-1]).hexdigest() if lines else "",
    }
    replace_durably(path, b"".join([*lines, canonical_json(document).encode() + b"\n"]))


def _take_back(archive: Path, target: Path, found: _Behind) -> None:
    folder = partition_folder(archive, found.topic, found.partition)
    aside = partition_folder(target, found.topic, found.partition)
    make_folder(aside, target)
    kept = [segment for segment in found.manifest.segments if segment.last < found.end]
    gone = found.manifest.segments[len(kept) :]
    with locked(folder / LOCK):
        _keep(folder / MANIFEST, aside / MANIFEST)
        for segment in gone:
            _keep(folder / segment.file, aside / segment.file)
        sync(aside)
        if gone[0].first < found.end:
            kept.append(_sealed_anew(folder, found, gone[0], kept[-1].sha256 if kept else ""))
        replace_durably(folder / MANIFEST, b"".join(map(line_of, kept)))
        for segment in gone:
            (folder / segment.file).unlink()
        sync(folder)


def _sealed_anew(folder: Path, found: _Behind, segment: Segment, previous: str) -> Segment:
    """The part of a segment before the end, as a segment of its own."""
    records = [
        record for record in read_segment(folder / segment.file, segment, found.partition) if record.offset < found.end
    ]
    data, last = encode_segment(records), found.end - 1
    name = segment_name(segment.first, last)
    replace_durably(folder / name, data)
    return Segment(name, segment.first, last, len(data), hashlib.sha256(data).hexdigest(), previous)


def _keep(source: Path, target: Path) -> None:
    """The file under another name too, its bytes durable there: a link where the file system has links, else a copy. A
    file that grows is copied."""
    if source.suffix != ".jsonl":
        with suppress(OSError):
            os.link(source, target)
            return
    write_durably(target, source.read_bytes())


def read_set_aside(archive: Path) -> list[dict[str, Any]]:
    """What `set-aside.jsonl` tells, oldest first. Raises ArchiveError where its chain breaks."""
    path, previous = archive / LOG, ""
    told: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines(keepends=True) if path.is_file() else []:
        try:
            document = json.loads(line)
            if document["previous"] != previous:
                raise ValueError("another line is missing or changed")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ArchiveError(f"the chain of {path} breaks at line {len(told) + 1}") from error
        told.append(document)
        previous = hashlib.sha256(line).hexdigest()
    return told
