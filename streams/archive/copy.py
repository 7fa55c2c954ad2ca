"""An archive to or from anywhere that fsspec reaches: another folder, an object store, memory.

What a manifest names is copied before the manifest, and the manifest before the cuts, so a copy that was cut short is
an archive that ends sooner, and copying again goes on with it. Every segment's sha256 is checked, also of those that
the target has already: one that is damaged there is copied again. A copy of an archive that is being written ends where
its manifests ended when they were read.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec.core

from schemas.topics import Topic
from streams.archive.container import MAX_SEGMENT_BYTES
from streams.archive.cut import CUTS
from streams.archive.durable import make_folder, replace_durably
from streams.archive.errors import ArchiveError
from streams.archive.heads import HEADS
from streams.archive.manifest import MANIFEST, entry_of
from streams.archive.segment import Segment
from streams.archive.set_aside import LOG as SET_ASIDE_LOG
from streams.archive.set_aside import SET_ASIDE

_MOST_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Store:
    """A folder somewhere. Names are relative to it, with slashes."""

    system: Any
    root: str
    local: bool

    @classmethod
    def at(cls, url: str) -> "Store":
        """The store of a path or URL that fsspec knows. Raises ArchiveError."""
        try:
            system, root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise ArchiveError(f"{url} cannot be opened: {error}") from error
        protocols = system.protocol if isinstance(system.protocol, tuple) else (system.protocol,)
        return cls(system, str(root).rstrip("/"), "file" in protocols)

    def read(self, name: str, most: int = _MOST_BYTES) -> bytes | None:
        """A file's bytes; None where the file is absent. Raises ArchiveError."""
        path = f"{self.root}/{name}"
        try:
            if self.system.size(path) > most:
                raise ArchiveError(f"{path} has more than {most} bytes")
            data: bytes = self.system.cat_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ArchiveError(f"{path} cannot be read: {error}") from error
        return data

    def size(self, name: str) -> int | None:
        """A file's size; None where the file is absent. Raises ArchiveError."""
        path = f"{self.root}/{name}"
        try:
            size: int = self.system.size(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ArchiveError(f"{path} cannot be read: {error}") from error
        return size

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in order; none where it is not there. Raises ArchiveError."""
        path = f"{self.root}/{folder}"
        try:
            found = self.system.ls(path, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ArchiveError(f"{path} cannot be read: {error}") from error
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)

    def write(self, name: str, data: bytes) -> None:
        """Writes a file, complete or not at all; on a local disk, durably. Raises ArchiveError."""
        path = f"{self.root}/{name}"
        try:
            if self.local:
                _write_locally(Path(path), data)
            else:
                self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
                self.system.pipe_file(path, data)
        except OSError as error:
            raise ArchiveError(f"{path} cannot be written: {error}") from error


@dataclass(slots=True)
class Copied:
    """The result of a copy. present: segments that the target had already."""

    segments: int = 0
    present: int = 0
    bytes: int = 0
    partitions: list[str] = field(default_factory=list)


def copy_archive(source: Store, target: Store, progress: Callable[[int], None] = lambda _: None) -> Copied:
    """Copies an archive. progress takes the bytes copied so far.

    Raises ArchiveError where a segment is not what its manifest says, or the target holds another archive.
    """
    copied = Copied()
    places = list(_places(source))
    if not places:
        raise ArchiveError(f"there is no archive at {source.root}")
    cuts, heads = source.read(CUTS), source.read(HEADS)
    for name in source.names("schemas"):
        if name.endswith((".avsc", ".json")) and (text := source.read(f"schemas/{name}")) is not None:
            target.write(f"schemas/{name}", text)
    for place in places:
        _copy_partition(source, target, place, copied, progress)
        copied.partitions.append(place)
    for name in _set_aside(source):
        if target.size(name) != source.size(name) and (data := source.read(name)) is not None:
            target.write(name, data)
    for name, data in ((CUTS, cuts), (HEADS, heads), (SET_ASIDE_LOG, source.read(SET_ASIDE_LOG))):
        if data is not None:
            target.write(name, data)
    return copied


def _set_aside(source: Store) -> Iterator[str]:
    """The files of what earlier returns to a cut have set aside."""
    for number in filter(str.isdecimal, source.names(SET_ASIDE)):
        folder = f"{SET_ASIDE}/{number}"
        if CUTS in source.names(folder):
            yield f"{folder}/{CUTS}"
        for topic in Topic:
            for partition in filter(str.isdecimal, source.names(f"{folder}/{topic.value}")):
                place = f"{folder}/{topic.value}/{partition}"
                yield from [f"{place}/{name}" for name in source.names(place) if name.endswith((".avro", ".jsonl"))]


def _places(source: Store) -> Iterator[str]:
    for topic in Topic:
        yield from [f"{topic.value}/{name}" for name in source.names(topic.value) if name.isdecimal()]


def _copy_partition(source: Store, target: Store, place: str, copied: Copied, progress: Callable[[int], None]) -> None:
    manifest = _whole(source.read(f"{place}/{MANIFEST}") or b"")
    present = _whole(target.read(f"{place}/{MANIFEST}") or b"")
    if not manifest.startswith(present):
        raise ArchiveError(f"{target.root}/{place} holds another archive, or one that has gone further")
    for segment in _segments(source, place, manifest):
        name = f"{place}/{segment.file}"
        if _holds(target, name, segment):
            copied.present += 1
            continue
        target.write(name, _sealed(source, name, segment))
        copied.segments += 1
        copied.bytes += segment.size
        progress(copied.bytes)
    target.write(f"{place}/{MANIFEST}", manifest)


def _holds(target: Store, name: str, segment: Segment) -> bool:
    """Whether the target has the segment, to the last byte."""
    if target.size(name) != segment.size:
        return False
    data = target.read(name, MAX_SEGMENT_BYTES)
    return data is not None and hashlib.sha256(data).hexdigest() == segment.sha256


def _segments(source: Store, place: str, manifest: bytes) -> list[Segment]:
    try:
        segments = [entry_of(line) for line in manifest.split(b"\n")[:-1]]
    except ValueError as error:
        raise ArchiveError(f"{source.root}/{place}/{MANIFEST} holds a line that is no entry") from error
    for before, after in itertools.pairwise(segments):
        if after.previous != before.sha256 or after.first != before.last + 1:
            raise ArchiveError(f"the chain of {source.root}/{place}/{MANIFEST} breaks at offset {after.first}")
    return segments


def _sealed(source: Store, name: str, segment: Segment) -> bytes:
    data = source.read(name, MAX_SEGMENT_BYTES)
    if data is None:
        raise ArchiveError(f"{source.root}/{name} is missing")
    if hashlib.sha256(data).hexdigest() != segment.sha256:
        raise ArchiveError(
            f"{source.root}/{name}, offset {segment.first}: it has another sha256 than its manifest says"
        )
    return data


def _whole(data: bytes) -> bytes:
    """Without a line that a crash cut short."""
    return data[: data.rfind(b"\n") + 1]


def _write_locally(path: Path, data: bytes) -> None:
    if not path.parent.is_dir():
        make_folder(path.parent, path.parent)
    replace_durably(path, data)
