"""The order in which an archive reaches the disk: a crash at any sync leaves a whole one."""

import os
from pathlib import Path

import pytest

from schemas.codec import AVRO_FOLDER
from schemas.topics import Topic
from streams.archive.errors import ArchiveError
from streams.archive.manifest import MANIFEST, read_manifest
from streams.archive.partition import PartitionArchive, partition_folder
from streams.archive.read import read_archive
from streams.archive.segment import segment_name
from streams.archive.worker import keep_schemas
from tests.archives import record, seal
from tests.streams.archive.synced import synced


def _numbered(folder: Path, records: int) -> PartitionArchive:
    return seal(folder, Topic.POOL, 0, [record(n, str(n).encode()) for n in range(records)])


def test_a_crash_at_any_sync_leaves_a_whole_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies, and what it wrote is there, synced or not: what a machine without power keeps is told by the
    order of syncs, below. What was sealed before is still there, and sealing goes on."""
    steps = _count_syncs(tmp_path / "counted", monkeypatch)
    assert steps >= 3
    for dies_at in range(steps):
        folder = tmp_path / str(dies_at)
        archive = _numbered(folder, 3)
        archive.add(record(3, b"3"), 0.0)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", _DiesAt(dies_at))
            with pytest.raises(_CrashError):
                archive.seal()
        resumed = PartitionArchive(folder, Topic.POOL, 0)
        start = resumed.next_offset
        assert start in (3, 4)
        for offset in range(start, 6):
            resumed.add(record(offset, str(offset).encode()), 0.0)
        resumed.seal()
        assert [kept.value for kept in read_archive(folder, Topic.POOL)] == [str(n).encode() for n in range(6)]
        names = {path.name for path in partition_folder(folder, Topic.POOL, 0).glob("*.avro")}
        assert names == {segment.file for segment in read_manifest(partition_folder(folder, Topic.POOL, 0)).segments}


def test_a_segment_is_synced_before_its_name_and_its_name_before_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = _numbered(tmp_path, 2)
    archive.add(record(2, b"2"), 0.0)
    done = synced(monkeypatch)
    archive.seal()
    folder = partition_folder(tmp_path, Topic.POOL, 0)
    assert done == [
        ("sync", folder / f".{os.getpid()}.tmp"),
        ("name", folder / segment_name(2, 2)),
        ("sync", folder),
        ("sync", folder / MANIFEST),
    ]


def test_folders_and_schemas_are_on_disk_before_the_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = synced(monkeypatch)
    folder = tmp_path / "new" / "run" / "archive"
    keep_schemas(folder)
    _numbered(folder, 2)
    first_entry = done.index(("sync", partition_folder(folder, Topic.POOL, 0) / MANIFEST))
    schemas = folder / "schemas"
    for named in (tmp_path, tmp_path / "new", tmp_path / "new" / "run", folder, folder / "pool", schemas):
        assert ("sync", named) in done[:first_entry], named
    texts = {path.name for path in AVRO_FOLDER.iterdir()}
    assert {path.name for path in schemas.iterdir()} == texts
    for name in texts:
        written = done.index(("sync", schemas / f".{os.getpid()}.{name}.tmp"))
        assert done[written + 1] == ("name", schemas / name), "its bytes before its name"
    last_name = max(n for n, (what, path) in enumerate(done) if what == "name" and path.parent == schemas)
    assert ("sync", schemas) in done[last_name:first_entry]
    done.clear()
    keep_schemas(folder)
    assert not [path for what, path in done if what == "name" and path.name != "index.json"], "whole ones stay"


def test_a_schema_that_was_cut_short_is_written_again_and_another_one_refused(tmp_path: Path) -> None:
    keep_schemas(tmp_path)
    path = tmp_path / "schemas" / "TaskRetired.v1.avsc"
    whole = path.read_bytes()
    for torn in (b"", whole[: len(whole) // 2], bytes(len(whole))):
        path.write_bytes(torn)
        (tmp_path / "schemas" / "index.json").write_bytes(torn)
        keep_schemas(tmp_path)
        assert path.read_bytes() == whole
        assert (tmp_path / "schemas" / "index.json").read_bytes() == (AVRO_FOLDER / "index.json").read_bytes()
    assert list((tmp_path / "schemas").glob("*.tmp")) == []
    path.write_bytes(whole.replace(b"mean", b"average"))
    with pytest.raises(ArchiveError, match=r"the schema TaskRetired.v1.avsc differs from the one that"):
        keep_schemas(tmp_path)


class _CrashError(Exception):
    pass


class _DiesAt:
    """A sync that fails at its n-th call, as the last thing a process does."""

    def __init__(self, step: int) -> None:
        self._left = step

    def __call__(self, _: int) -> None:
        if self._left == 0:
            raise _CrashError
        self._left -= 1


def _count_syncs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    archive = _numbered(folder, 3)
    archive.add(record(3, b"3"), 0.0)
    calls: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", calls.append)
        archive.seal()
    return len(calls)
