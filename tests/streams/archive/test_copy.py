from pathlib import Path

import pytest

from schemas.topics import Topic
from streams.archive.copy import Store, copy_archive
from streams.archive.cut import read_cuts, record_cut
from streams.archive.errors import ArchiveError
from streams.archive.manifest import MANIFEST
from streams.archive.partition import partition_folder
from streams.archive.read import read_archive
from streams.archive.segment import segment_name
from streams.archive.set_aside import read_set_aside, set_aside
from streams.archive.worker import keep_schemas
from tests.archives import record, seal


def _sealed(folder: Path, *offsets: int, value: bytes = b"v") -> Path:
    keep_schemas(folder)
    seal(folder, Topic.POOL, 0, [record(offset, value) for offset in offsets], size=1)
    return folder


def _copy(source: Path | str, target: Path | str) -> tuple[int, int]:
    copied = copy_archive(Store.at(str(source)), Store.at(str(target)))
    return copied.segments, copied.present


def test_a_copy_reads_as_the_archive_does(tmp_path: Path) -> None:
    source = _sealed(tmp_path / "a", 0, 1, 2)
    record_cut(source, "one", {(Topic.POOL, 0): 2})
    assert _copy(source, tmp_path / "b") == (3, 0)
    assert list(read_archive(tmp_path / "b", Topic.POOL)) == list(read_archive(source, Topic.POOL))
    assert read_cuts(tmp_path / "b") == read_cuts(source)
    assert (tmp_path / "b" / "schemas" / "index.json").exists()


def test_a_copy_goes_through_any_store_and_back(tmp_path: Path) -> None:
    source = _sealed(tmp_path / "a", 0, 1)
    assert _copy(source, "memory://bucket/run-1") == (2, 0)
    assert _copy("memory://bucket/run-1", tmp_path / "b") == (2, 0)
    assert list(read_archive(tmp_path / "b", Topic.POOL)) == list(read_archive(source, Topic.POOL))


def test_copying_again_adds_what_has_come_since(tmp_path: Path) -> None:
    source = _sealed(tmp_path / "a", 0)
    _copy(source, tmp_path / "b")
    _sealed(source, 1)
    assert _copy(source, tmp_path / "b") == (1, 1)
    assert [record.offset for record in read_archive(tmp_path / "b", Topic.POOL)] == [0, 1]


def test_a_copy_that_was_cut_short_is_an_archive_that_ends_sooner(tmp_path: Path) -> None:
    source = _sealed(tmp_path / "a", 0, 1)
    _copy(source, tmp_path / "b")
    folder = partition_folder(tmp_path / "b", Topic.POOL, 0)
    (folder / MANIFEST).unlink()
    assert list(read_archive(tmp_path / "b", Topic.POOL)) == []
    assert _copy(source, tmp_path / "b") == (0, 2), "the segments were whole"
    assert [record.offset for record in read_archive(tmp_path / "b", Topic.POOL)] == [0, 1]


def test_another_archive_is_never_overwritten(tmp_path: Path) -> None:
    source, other = _sealed(tmp_path / "a", 0), _sealed(tmp_path / "b", 0, value=b"other")
    with pytest.raises(ArchiveError, match="holds another archive"):
        _copy(source, other)
    _copy(_sealed(source, 1), tmp_path / "c")
    with pytest.raises(ArchiveError, match="gone further"):
        _copy(_sealed(tmp_path / "d", 0), tmp_path / "c")


def test_a_damaged_segment_is_not_copied(tmp_path: Path) -> None:
    source = _sealed(tmp_path / "a", 0)
    segment = next(partition_folder(source, Topic.POOL, 0).glob("*.avro"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    with pytest.raises(ArchiveError, match=rf"{segment.name}, offset 0: it has another sha256"):
        _copy(source, tmp_path / "b")


def test_a_segment_that_is_damaged_in_the_copy_is_copied_again(tmp_path: Path) -> None:
    source = _sealed(tmp_path / "a", 0, 1)
    for target in (str(tmp_path / "b"), "memory://damaged/run"):
        assert _copy(source, target) == (2, 0)
        store = Store.at(target)
        name = f"pool/00000/{segment_name(1, 1)}"
        data = store.read(name)
        assert data
        store.write(name, data[:-1] + bytes([data[-1] ^ 1]))
        assert _copy(source, target) == (1, 1), "its size alone says nothing"
        assert store.read(name) == data
        assert _copy(source, target) == (0, 2)


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="cannot be opened"):
        Store.at("nowhere://x")
    with pytest.raises(ArchiveError, match="no archive"):
        _copy(tmp_path / "none", tmp_path / "b")


class Refusing:
    """A system that lets nobody in."""

    def refuse(self, *_: object, **__: object) -> None:
        raise PermissionError("not for you")

    size = ls = refuse


def test_what_may_not_be_read_is_said() -> None:
    store = Store(Refusing(), "runs", local=True)
    for read in (store.size, store.names):
        with pytest.raises(ArchiveError, match="runs/pool cannot be read: not for you"):
            read("pool")


def test_what_was_set_aside_is_copied_too(tmp_path: Path) -> None:
    source = _sealed(tmp_path / "a", 0, 1, 2)
    cut = record_cut(source, "one", {(Topic.POOL, 0): 2})
    set_aside(source, cut)
    assert _copy(source, tmp_path / "b") == (2, 0)
    assert _files(tmp_path / "b") == _files(source)
    assert read_set_aside(tmp_path / "b") == read_set_aside(source)


def _files(root: Path) -> list[Path]:
    found = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return sorted(path.relative_to(root) for path in found)
