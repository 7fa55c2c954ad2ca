from dataclasses import replace
from pathlib import Path

import pytest

from schemas.pool import BoundaryOpened, PoolMaterialized
from schemas.topics import Topic
from streams.archive.read import read_partition
from streams.audit.errors import AuditError
from streams.audit.load.source import ArchiveSource
from streams.audit.recompute.pool_epoch import last_epoch, pool_of
from streams.audit.replay import replay
from tests.archives import seal
from tests.pools import pools_of
from tests.streams.audit.forge import GOLDEN, forge, places


@pytest.mark.parametrize("archive", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_the_pool_of_each_epoch_is_the_recorded_one_and_that_of_a_replay(archive: Path) -> None:
    recorded = [event for _, event in places(archive, Topic.POOL, lambda event: isinstance(event, PoolMaterialized))]
    found = pools_of(archive)
    assert [(one.epoch, one.recorded.digest) for one in found] == [(one.epoch, one.digest) for one in recorded]
    assert all(one.agrees for one in found)
    source = ArchiveSource(archive)
    assert replay(source).digests == {one.epoch: one.recomputed.digest for one in found}


def test_the_last_epoch_is_the_default() -> None:
    source = ArchiveSource(GOLDEN / "windowed")
    assert last_epoch(source) == 3
    assert pool_of(source).epoch == 3


def test_a_pool_that_does_not_follow_is_shown_to_differ(tmp_path: Path) -> None:
    place, _ = places(GOLDEN / "windowed", Topic.POOL, lambda e: isinstance(e, PoolMaterialized) and e.epoch == 2)[0]
    forged = forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, digest="0" * 64))
    assert not pool_of(ArchiveSource(forged), 2).agrees
    assert pool_of(ArchiveSource(forged), 1).agrees


def test_a_boundary_on_other_seals_and_an_epoch_that_is_not_there_are_errors(tmp_path: Path) -> None:
    place, _ = places(GOLDEN / "windowed", Topic.POOL, lambda e: isinstance(e, BoundaryOpened) and e.epoch == 2)[0]
    forged = forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, selection_digest="0" * 64))
    with pytest.raises(AuditError, match="the pool of epoch 2 does not follow from the log"):
        pool_of(ArchiveSource(forged), 2)
    with pytest.raises(AuditError, match="the log holds no pool of epoch 9"):
        pool_of(ArchiveSource(GOLDEN / "windowed"), 9)


def test_the_last_epoch_is_found_in_whatever_segment_it_stands(tmp_path: Path) -> None:
    pool = list(read_partition(GOLDEN / "windowed", Topic.POOL, 0))
    for size in (1, 5, 1000):
        folder = tmp_path / str(size)
        seal(folder, Topic.POOL, 0, pool, size)
        assert last_epoch(ArchiveSource(folder)) == 3
    assert last_epoch(ArchiveSource(tmp_path)) is None
