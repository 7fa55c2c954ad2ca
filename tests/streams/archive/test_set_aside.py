import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from schemas.topics import Topic
from streams.archive import set_aside as module
from streams.archive.cut import CUTS, Cut, read_cuts, record_cut
from streams.archive.durable import replace_durably
from streams.archive.errors import ArchiveError
from streams.archive.manifest import MANIFEST, read_manifest
from streams.archive.partition import PartitionArchive, partition_folder
from streams.archive.read import read_partition
from streams.archive.set_aside import read_set_aside, set_aside
from tests.archives import record, seal
from tests.streams.archive.synced import synced

PLACES = ((Topic.POOL, 0), (Topic.ROLLOUTS, 0), (Topic.ROLLOUTS, 1))


def grow(archive: Path, topic: Topic, partition: int, offsets: Iterable[int], history: str = "first") -> None:
    """Seals records at these offsets as one segment."""
    records = [record(n, f"{history} {n}".encode(), topic=topic, partition=partition) for n in offsets]
    seal(archive, topic, partition, records)


def values(archive: Path, topic: Topic, partition: int) -> list[str]:
    return [(record.value or b"").decode() for record in read_partition(archive, topic, partition)]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two segments of five records in each partition; the cut goes through the second, lies between them, and lies
    before the first. A later cut takes everything in."""
    folder = tmp_path / "archive"
    for topic, partition in PLACES:
        grow(folder, topic, partition, range(5))
        grow(folder, topic, partition, range(5, 10))
    record_cut(folder, "step-000001", dict(zip(PLACES, (7, 5, 0), strict=True)))
    record_cut(folder, "step-000002", dict.fromkeys(PLACES, 10))
    return folder


def cut(archive: Path, number: int) -> Cut:
    return read_cuts(archive)[number - 1]


def test_the_archive_ends_at_the_cut_and_goes_on_from_it(archive: Path) -> None:
    done = set_aside(archive, cut(archive, 1))
    assert (done.cut, done.records) == (1, 3 + 5 + 10)
    assert [len(values(archive, *place)) for place in PLACES] == [7, 5, 0]
    for (topic, partition), end in zip(PLACES, (7, 5, 0), strict=True):
        grow(archive, topic, partition, range(end, end + 2), "second")
        told = values(archive, topic, partition)
        assert told == [f"first {n}" for n in range(end)] + [f"second {end}", f"second {end + 1}"]
    assert [known.name for known in read_cuts(archive)] == ["step-000001"]
    record_cut(archive, "step-000002", dict.fromkeys(PLACES, 2))


def test_what_lay_behind_is_kept_whole_with_its_own_chain(archive: Path) -> None:
    before = {place: read_manifest(partition_folder(archive, *place)) for place in PLACES}
    done = set_aside(archive, cut(archive, 1))
    assert done.folder is not None
    for place in PLACES:
        aside = partition_folder(done.folder, *place)
        assert read_manifest(aside) == before[place]
        for segment in before[place].segments:
            if not (aside / segment.file).exists():
                shutil.copyfile(partition_folder(archive, *place) / segment.file, aside / segment.file)
        assert values(done.folder, *place) == [f"first {n}" for n in range(10)]
    assert [known.name for known in read_cuts(done.folder)] == ["step-000001", "step-000002"]


def test_the_archive_says_what_was_set_aside(archive: Path) -> None:
    chain = read_manifest(partition_folder(archive, Topic.POOL, 0)).chain
    set_aside(archive, cut(archive, 1))
    grow(archive, Topic.POOL, 0, range(7, 9), "second")
    set_aside(archive, cut(archive, 1))
    first, second = read_set_aside(archive)
    assert first["partitions"]["pool/0"] == {"end": 7, "next_offset": 10, "chain": chain}
    assert (first["cut"], first["folder"], second["folder"]) == (1, "set-aside/0001", "set-aside/0002")
    assert second["partitions"].keys() == {"pool/0"} and second["partitions"]["pool/0"]["next_offset"] == 9
    path = archive / module.LOG
    path.write_bytes(path.read_bytes().replace(b'"next_offset":10', b'"next_offset":11', 1))
    with pytest.raises(ArchiveError, match="breaks at line 2"):
        read_set_aside(archive)


def test_where_nothing_lies_behind_nothing_changes(archive: Path) -> None:
    before = {path: path.read_bytes() for path in archive.rglob("*") if path.is_file()}
    assert set_aside(archive, cut(archive, 2)).folder is None
    assert {path: path.read_bytes() for path in archive.rglob("*") if path.is_file()} == before


def test_cut_short_and_done_again_it_comes_to_the_same(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def dies(path: Path, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            raise KeyboardInterrupt
        replace_durably(path, data)

    wanted = cut(archive, 1)
    monkeypatch.setattr(module, "replace_durably", dies)
    for dies_at in range(1, 7):
        copy = archive.with_name(f"copy-{dies_at}")
        shutil.copytree(archive, copy)
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            set_aside(copy, wanted)
        calls = 100
        set_aside(copy, wanted)
        assert [len(values(copy, *place)) for place in PLACES] == [7, 5, 0]
        for topic, partition in PLACES:
            PartitionArchive(copy, topic, partition)
        assert [len(values(copy, *place)) for place in PLACES] == [7, 5, 0]


def test_what_is_set_aside_is_on_disk_before_the_archive_lets_go_of_it(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = synced(monkeypatch)
    aside = set_aside(archive, cut(archive, 1)).folder
    assert aside is not None
    kept = [(aside / CUTS, aside, archive / CUTS)]
    for topic, partition in PLACES:
        old, new = partition_folder(aside, topic, partition), partition_folder(archive, topic, partition)
        kept.append((old / MANIFEST, old, new / MANIFEST))
    for copy, folder, original in kept:
        assert ("sync", copy) in done, copy
        assert done.index(("sync", copy)) < done.index(("name", original))
        assert ("sync", folder) in done[done.index(("sync", copy)) : done.index(("name", original))]


def test_a_cut_of_another_archive_is_refused(archive: Path) -> None:
    other = Cut(1, "step-000001", {}, "", "0" * 64)
    with pytest.raises(ArchiveError, match="none of the archive"):
        set_aside(archive, other)
