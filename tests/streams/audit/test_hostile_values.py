"""Logs with values that no run writes: whoever reads them says so in a sentence, and `verify` and a story read on."""

import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest

from eventlog.reader import LogRecord
from schemas.codec import decode, encode
from schemas.epochs import EpochOpened
from schemas.pool import PoolMaterialized
from schemas.seals import PartitionSealed, SelectionClosed, TaskState, WindowGroup
from schemas.synthesis import StageFinished
from schemas.topics import Topic
from streams.archive.container import CODEC, PARSED
from streams.archive.manifest import MANIFEST, line_of, read_manifest
from streams.archive.partition import partition_folder
from streams.archive.segment import read_segment
from streams.audit.compare.runs import compare_runs
from streams.audit.drift.figures import drift
from streams.audit.errors import AuditError
from streams.audit.load.columns import ColumnStore
from streams.audit.load.epochs import run_facts
from streams.audit.load.source import ArchiveSource
from streams.audit.overlay import Overlay
from streams.audit.recompute.pool_epoch import last_epoch, pool_of
from streams.audit.replay import ReplayOptions, replay
from streams.audit.trace import lineage
from streams.audit.verify.archive import verify_archive
from streams.audit.verify.fault import FaultKind
from streams.audit.what_if import what_if
from tests.golden.events import sample
from tests.streams.audit.forge import GOLDEN, Place, forge, insert, places

ARCHIVE = GOLDEN / "windowed"
NOTHING = WindowGroup("g", 0, 0, 0, 1)


def forged(target: Path, topic: Topic, kind: type[Any], edit: Callable[[Any], Any]) -> ArchiveSource:
    """The archive with the last event of a kind edited."""
    place, _ = places(ARCHIVE, topic, lambda event: isinstance(event, kind))[-1]
    return ArchiveSource(forge(ARCHIVE, target, place, edit))


def stated(seal: PartitionSealed, **changes: Any) -> PartitionSealed:
    """A seal whose groups are changed."""
    return replace(seal, groups=tuple(replace(group, **changes) for group in seal.groups))


def test_what_cannot_be_read_of_values_that_no_run_writes_is_said_in_a_sentence(tmp_path: Path) -> None:
    no_end = forged(tmp_path / "s", Topic.SEALS, PartitionSealed, lambda event: replace(event, last_of_epoch=False))
    first, _ = places(ARCHIVE, Topic.EPOCHS, lambda event: isinstance(event, EpochOpened))[0]
    nowhere = ArchiveSource(forge(ARCHIVE, tmp_path / "n", first, lambda event: replace(event, partitions=0)))
    unread = ArchiveSource(forge(ARCHIVE, tmp_path / "r", first, lambda event: replace(event, rules="{")))
    task = pool_of(unread).recorded.members[0]
    for read in (
        lambda: compare_runs(unread, ArchiveSource(ARCHIVE)),
        lambda: what_if(no_end, Overlay()),
        lambda: lineage(nowhere, task),
    ):
        with pytest.raises(AuditError, match=r"values that no run writes .* rods audit verify tells where"):
            read()


def test_replay_tells_of_rules_nested_deeper_than_any_reader_goes(tmp_path: Path) -> None:
    place, _ = places(ARCHIVE, Topic.SEALS, lambda event: isinstance(event, PartitionSealed))[0]
    source = ArchiveSource(forge(ARCHIVE, tmp_path, place, lambda event: replace(event, rules="[" * 100_000)))
    assert not replay(source, ReplayOptions(jobs=1)).agrees
    assert FaultKind.VALUE in {fault.kind for fault in verify_archive(tmp_path).faults}


def test_verify_tells_of_schema_texts_that_are_none(tmp_path: Path) -> None:
    archive = shutil.copytree(ARCHIVE, tmp_path / "archive")
    text = archive / "schemas" / "TaskRetired.v1.avsc"
    text.unlink()
    text.mkdir()
    assert [fault.file for fault in verify_archive(archive).faults] == ["schemas/TaskRetired.v1.avsc"]
    (archive / "schemas" / "index.json").write_text("[" * 100_000)
    assert [fault.file for fault in verify_archive(archive).faults] == ["schemas/index.json"]


def test_an_event_whose_values_no_column_holds_leaves_the_drift_as_it_was(tmp_path: Path) -> None:
    place, stage = places(ARCHIVE, Topic.SYNTHESIS, lambda event: isinstance(event, StageFinished))[0]
    large = encode(replace(stage, epoch=-(2**63)))
    source, as_it_was = ArchiveSource(insert(ARCHIVE, tmp_path, place, large)), ArchiveSource(ARCHIVE)
    found, expected = (drift(ColumnStore(one, None, 1), run_facts(one)) for one in (source, as_it_was))
    assert found == expected


@pytest.mark.parametrize("kind", [PoolMaterialized, SelectionClosed])
def test_verify_reads_on_past_a_dead_letter_that_is_none(kind: type[Any], tmp_path: Path) -> None:
    archive = insert(ARCHIVE, tmp_path, Place(Topic.DEAD_LETTERS, 0, 0), encode(sample(kind, "full")))
    assert [fault.kind for fault in verify_archive(archive).faults] == [FaultKind.MISPLACED]


@pytest.mark.parametrize("offset", [-5, 10**9])
def test_verify_tells_of_an_edited_trajectory_at_an_offset_that_cannot_be(offset: int, tmp_path: Path) -> None:
    def edited(record: LogRecord) -> LogRecord:
        event = decode(record.value or b"")
        return record._replace(offset=offset, value=encode(replace(event, messages=event.messages + " ")))

    archive = shutil.copytree(ARCHIVE, tmp_path / "archive")
    first_replaced(archive, Topic.TRAJECTORIES, edited)
    faults = verify_archive(archive).faults
    assert {FaultKind.CHANGED, FaultKind.TRAJECTORY} <= {fault.kind for fault in faults}


def first_replaced(archive: Path, topic: Topic, edit: Callable[[LogRecord], LogRecord]) -> None:
    """Writes the first segment of partition 0 with another first record; the manifest says what it said, but for the
    size."""
    folder = partition_folder(archive, topic, 0)
    first, *others = read_manifest(folder).segments
    head, *records = read_segment(folder / first.file, first, 0)
    rows: list[dict[str, Any]] = [
        {"offset": one.offset, "timestamp": one.timestamp, "key": one.key, "value": one.value, "headers": []}
        for one in (edit(head), *records)
    ]
    out = io.BytesIO()
    metadata = {"rods.topic": head.topic, "rods.partition": "0"}
    fastavro.writer(out, PARSED, rows, codec=CODEC, metadata=metadata)
    (folder / first.file).write_bytes(out.getvalue())
    lines = [line_of(replace(first, size=len(out.getvalue()))), *map(line_of, others)]
    (folder / MANIFEST).write_bytes(b"".join(lines))


def test_the_last_epoch_is_that_of_the_last_pool_that_can_be_read(tmp_path: Path) -> None:
    torn = encode(sample(PoolMaterialized, "full"))[:20]
    assert last_epoch(ArchiveSource(insert(ARCHIVE, tmp_path, Place(Topic.POOL, 0, 10**6), torn))) == 3


def test_a_recorded_pool_of_tasks_that_nobody_defined_is_shown(tmp_path: Path) -> None:
    unknown = "v-" + "0" * 24
    source = forged(tmp_path, Topic.POOL, PoolMaterialized, lambda event: replace(event, queue=(unknown,)))
    assert [row["category"] for row in pool_of(source).rows() if row["task"] == unknown] == [""]


@pytest.mark.parametrize(
    "changes", [{"reasons": ()}, {"passed": ()}, {"state": TaskState("", "", (NOTHING,), 1, 0, 0)}]
)
def test_a_story_goes_on_past_a_seal_that_cannot_be(changes: Any, tmp_path: Path) -> None:
    place, seal = places(ARCHIVE, Topic.SEALS, lambda event: isinstance(event, PartitionSealed) and bool(event.groups))[
        0
    ]
    source = ArchiveSource(forge(ARCHIVE, tmp_path, place, lambda event: stated(event, **changes)))
    told = [fact for fact in lineage(source, seal.groups[0].task).root.facts if fact.kind == "measured"]
    assert len(told) > 1
    assert ("mean impossible" in told[0].text) == ("state" in changes)
