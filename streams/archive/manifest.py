"""A partition's manifest: the chain of its sealed segments, and the offset of record.

``manifest.jsonl`` holds one canonical JSON object a segment. It grows by compare-and-swap: a writer states what it has
read, and a lock held by the operating system, which a killed writer gives up, makes check and append one act. A line
that a crash cut short is no entry; the next append replaces it.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from schemas.rules import canonical_json
from streams.archive.durable import append_durably, locked, sync
from streams.archive.errors import ArchiveConflictError, ArchiveError
from streams.archive.segment import Segment, segment_name

MANIFEST = "manifest.jsonl"
LOCK = "manifest.lock"
_LONGEST_LINE = 1024


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a partition's manifest said when it was read. length: bytes of its complete entries."""

    segments: tuple[Segment, ...] = ()
    length: int = 0

    @property
    def head(self) -> str:
        """sha256 of the newest segment, empty without segments."""
        return self.segments[-1].sha256 if self.segments else ""

    @property
    def chain(self) -> str:
        """sha256 over every entry, each with the one before: the head of the chain, to be kept elsewhere."""
        return chain_of(self.segments)

    @property
    def next_offset(self) -> int | None:
        """The offset to archive next; None where nothing is archived yet."""
        return self.segments[-1].last + 1 if self.segments else None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a partition's folder, its chain checked; empty where there is none. Raises ArchiveError."""
    path = folder / MANIFEST
    if not path.exists():
        return Manifest()
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    segments = tuple(_entry(path, number, line) for number, line in enumerate(whole.split(b"\n")[:-1], 1))
    for before, after in itertools.pairwise(segments):
        if after.previous != before.sha256 or after.first != before.last + 1:
            raise ArchiveError(f"the chain of {path} breaks at offset {after.first}")
    if segments and segments[0].previous:
        raise ArchiveError(f"the chain of {path} lacks its beginning, before offset {segments[0].first}")
    return Manifest(segments, len(whole))


def newest_entry(folder: Path) -> Segment | None:
    """The newest segment, from the end of the manifest alone; None where there is none. Raises ArchiveError."""
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 2 * _LONGEST_LINE))
            lines = file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return None
    return _entry(path, -1, lines[-1]) if lines else None


def take_up(folder: Path) -> Manifest:
    """The manifest to go on from, after throwing away what a killed archiver left unsealed or without an entry."""
    with locked(folder / LOCK):
        manifest = read_manifest(folder)
        kept = {segment.file for segment in manifest.segments}
        for path in folder.iterdir():
            if path.suffix in (".avro", ".tmp") and path.name not in kept:
                path.unlink()
    return manifest


def append(folder: Path, seen: Manifest, segment: Segment, sealed: Path) -> Manifest:
    """Moves the file `sealed` to its place and enters it; the grown manifest.

    Both are on disk when this returns. Raises ArchiveConflictError, with nothing changed, where the manifest is no
    longer the one `seen`.
    """
    with locked(folder / LOCK):
        if not sealed.exists() or not _is_still(folder, seen):
            raise ArchiveConflictError(f"another archiver writes to {folder}, at offset {segment.first}")
        sealed.replace(folder / segment.file)
        sync(folder)
        return _write(folder, seen, segment)


def _write(folder: Path, current: Manifest, segment: Segment) -> Manifest:
    line = line_of(segment)
    append_durably(folder / MANIFEST, current.length, line)
    if not current.segments:
        sync(folder)
    return Manifest((*current.segments, segment), current.length + len(line))


def _is_still(folder: Path, seen: Manifest) -> bool:
    """Whether the manifest ends, after complete entries, with the newest one seen. Reads the end of the file alone."""
    newest = line_of(seen.segments[-1]) if seen.segments else b""
    try:
        with (folder / MANIFEST).open("rb") as file:
            file.seek(seen.length - len(newest))
            tail = file.read()
    except FileNotFoundError:
        return not seen.segments
    return tail.startswith(newest) and b"\n" not in tail[len(newest) :]


def line_of(segment: Segment) -> bytes:
    """The line of a manifest that enters a segment."""
    return canonical_json(asdict(segment)).encode() + b"\n"


def entry_of(line: bytes) -> Segment:
    """The segment that a manifest's line enters, without its newline. Raises ValueError where it enters none."""
    try:
        segment = Segment(**json.loads(line))
        known = segment.file == segment_name(segment.first, segment.last) and 0 <= segment.first <= segment.last
        known = known and segment.size >= 0
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("not an entry") from error
    numbers, texts = (segment.first, segment.last, segment.size), (segment.sha256, segment.previous)
    typed = all(type(number) is int for number in numbers) and all(isinstance(text, str) for text in texts)
    if not (known and typed) or line_of(segment) != line + b"\n":
        raise ValueError("impossible values, or not in canonical form")
    return segment


def chain_of(segments: Iterable[Segment]) -> str:
    """sha256, hexadecimal, over the entries in order, each hashed with what came before; empty without entries."""
    chain = ""
    for segment in segments:
        chain = hashlib.sha256(chain.encode() + line_of(segment)).hexdigest()
    return chain


def _entry(path: Path, number: int, line: bytes) -> Segment:
    try:
        return entry_of(line)
    except ValueError as error:
        which = "the last line" if number < 0 else f"line {number}"
        raise ArchiveError(f"{which} of {path} is no entry of a manifest") from error
