"""An event on a topic that does not carry it: passed over wherever a run is read, and told by `verify`."""

from pathlib import Path

import pytest

from schemas.codec import encode
from schemas.pool import VariantVerified
from schemas.seals import SelectionClosed
from schemas.topics import Topic
from streams.audit.compare.runs import compare_runs
from streams.audit.drift.figures import drift
from streams.audit.load.columns import ColumnStore
from streams.audit.load.epochs import run_facts
from streams.audit.load.source import ArchiveSource
from streams.audit.overlay import Overlay
from streams.audit.recompute.pool_epoch import pool_of
from streams.audit.replay import ReplayOptions, replay
from streams.audit.trace import lineage
from streams.audit.verify.archive import verify_archive
from streams.audit.verify.fault import FaultKind
from streams.audit.what_if import what_if
from tests.golden.events import sample
from tests.pools import pools_of
from tests.streams.audit.forge import GOLDEN, Place, insert, places

ARCHIVE = GOLDEN / "windowed"
PLACES = [
    Place(Topic.EPOCHS, 0, 0),
    Place(Topic.POOL, 0, 0),
    Place(Topic.POOL, 0, 30),
    Place(Topic.SEALS, 0, 0),
    Place(Topic.SEALS, 0, 9),
    Place(Topic.SEEDS, 0, 0),
    Place(Topic.SYNTHESIS, 0, 1),
    Place(Topic.MEASUREMENTS, 1, 2),
    Place(Topic.ROLLOUTS, 0, 19),
]


@pytest.fixture(params=PLACES, ids=lambda place: f"{place.topic}-{place.offset}")
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.param
    return found


@pytest.fixture
def foreign(place: Place, tmp_path: Path) -> Path:
    """The archive with such an event in a place."""
    kind = VariantVerified if place.topic is Topic.SEALS else SelectionClosed
    return insert(ARCHIVE, tmp_path / "archive", place, encode(sample(kind, "full")))


def test_whoever_reads_a_run_passes_over_an_event_that_the_topic_does_not_carry(foreign: Path) -> None:
    source, as_it_was = ArchiveSource(foreign), ArchiveSource(ARCHIVE)
    report, expected = (replay(one, ReplayOptions(jobs=1)) for one in (source, as_it_was))
    assert (report.divergences, report.digests, report.counts) == ((), expected.digests, expected.counts)
    assert list(pool_of(source).lines()) == list(pool_of(as_it_was).lines())
    assert [pool.agrees for pool in pools_of(foreign)] == [True] * 4
    assert what_if(source, Overlay()) == what_if(as_it_was, Overlay())
    drifts = [drift(ColumnStore(one), run_facts(one)) for one in (source, as_it_was)]
    assert drifts[0] == drifts[1]
    assert compare_runs(source, as_it_was).equal
    task = places(ARCHIVE, Topic.POOL, lambda event: isinstance(event, VariantVerified))[0][1].definition.parent
    root = lineage(source, task).root
    assert [fact.kind for fact in root.facts] == [fact.kind for fact in lineage(as_it_was, task).root.facts]


def test_verify_tells_where_it_stands(foreign: Path, place: Place) -> None:
    fault = next(fault for fault in verify_archive(foreign).faults if fault.kind is FaultKind.MISPLACED)
    assert (fault.offset, fault.file.split("/")[0]) == (place.offset, place.topic.value)
    assert f"does not travel on {place.topic.value}" in fault.meaning
