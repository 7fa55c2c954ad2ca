"""A variant that somebody wrote to `rods.pool` for a seed that was never selected: it changes no decision."""

from dataclasses import replace
from pathlib import Path

import pytest

from schemas.codec import encode
from schemas.identity import content_digest, variant_id
from schemas.pool import VariantVerified
from schemas.topics import Topic
from streams.audit.load.source import ArchiveSource
from streams.audit.overlay import Overlay
from streams.audit.recompute.pool_epoch import pool_of
from streams.audit.replay import ReplayOptions, replay
from streams.audit.what_if import what_if
from streams.pool.decide import decide_boundary
from tests.pools import pools_of
from tests.streams.audit.forge import GOLDEN, insert, places

ARCHIVE = GOLDEN / "windowed"


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """The archive with such a variant before the first honest one, and before it in the queue."""
    place, honest = places(ARCHIVE, Topic.POOL, lambda event: isinstance(event, VariantVerified))[0]
    seed, definition = "0" * 32, replace(honest.definition, scenario="made up")
    content = content_digest(definition)
    definition = replace(definition, task=variant_id(seed, content))
    made_up = replace(honest, seed=seed, step=1, rank=0, definition=definition, content=content)
    return insert(ARCHIVE, tmp_path / "archive", place, encode(made_up))


def test_it_is_passed_over(forged: Path) -> None:
    report, expected = (replay(ArchiveSource(one), ReplayOptions(jobs=1)) for one in (forged, ARCHIVE))
    assert (report.divergences, report.digests) == ((), expected.digests)
    assert [pool.agrees for pool in pools_of(forged)] == [True] * 4
    assert [pool_of(ArchiveSource(forged), epoch).agrees for epoch in range(4)] == [True] * 4
    assert what_if(ArchiveSource(forged), Overlay()) == what_if(ArchiveSource(ARCHIVE), Overlay())


def test_it_would_come_in_otherwise(forged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(cut: object, opened: object, evidence: object, generation: int) -> object:
        return decide_boundary(cut, opened, replace(evidence, selected=None), generation)  # type: ignore[arg-type,type-var]

    monkeypatch.setattr("streams.audit.recompute.boundaries.decide_boundary", trusting)
    first = replay(ArchiveSource(forged), ReplayOptions(jobs=1)).first
    assert first is not None
    assert first.stage == "pool"
