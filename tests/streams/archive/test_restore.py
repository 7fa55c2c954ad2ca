"""An archive goes back into an empty broker as it was: offsets, times, keys, headers."""

import asyncio
from pathlib import Path

import pytest

from eventlog.reader import LogRecord, read_all
from rods.brokers.embedded import create_topics
from rods.brokers.restored_topics import create_restored_topics
from rods.errors import UserError
from schemas.topics import Topic
from streams.archive.cut import record_cut
from streams.archive.errors import ArchiveError
from streams.archive.partition import PartitionArchive
from streams.archive.read import read_archive
from streams.archive.restore import FILLER_HEADER, RestoreSettings, archived_partition_count, restore
from streams.archive.worker import ArchiveSettings, archive_until, keep_schemas

OLD = 1_000_000_000_000
"""2001, in milliseconds: older than any default retention."""


def _records(topic: Topic, partition: int, count: int, first: int = 0) -> list[LogRecord]:
    return [
        LogRecord(
            topic.named("rods."),
            partition,
            offset,
            OLD + offset,
            None if offset % 5 == 3 else b"key",
            None if offset % 9 == 3 else bytes([offset % 256]) * (offset % 40),
            (("h", b"1"), ("n", None)) if offset % 7 == 2 else (),
        )
        for offset in range(first, first + count)
    ]


def _archive(folder: Path, first: int = 0) -> Path:
    keep_schemas(folder)
    for topic in Topic:
        for partition in range(2 if topic.by_task else 1):
            archive = PartitionArchive(folder, topic, partition)
            wanted = {Topic.ROLLOUTS: 1200 + partition, Topic.POOL: 3}.get(topic, 0)
            for record in _records(topic, partition, wanted, first if topic is Topic.ROLLOUTS else 0):
                archive.add(record, 0.0)
                if archive.unsealed_bytes > 20_000:
                    archive.seal()
            archive.seal()
    return folder


async def _archive_again(broker: str, prefix: str, folder: Path) -> Path:
    stopping = asyncio.Event()
    stopping.set()
    await archive_until(ArchiveSettings(broker, prefix, 2, folder), stopping)
    return folder


def _same(one: Path, other: Path) -> bool:
    return all(
        [record._replace(topic="") for record in read_archive(one, topic)]
        == [record._replace(topic="") for record in read_archive(other, topic)]
        for topic in Topic
    )


async def test_a_restored_log_is_the_archived_one_record_by_record(broker: str, tmp_path: Path) -> None:
    archive = _archive(tmp_path / "archive")
    await create_restored_topics(broker, "back.", archived_partition_count(archive))
    seen: list[tuple[int, int]] = []
    written = await restore(RestoreSettings(broker, "back.", archive), lambda *done: seen.append(done))
    assert written == 1200 + 1201 + 3
    assert seen[-1] == (written, written)
    assert _same(archive, await _archive_again(broker, "back.", tmp_path / "again"))


async def test_topics_that_hold_anything_are_refused(broker: str, tmp_path: Path) -> None:
    archive = _archive(tmp_path / "archive")
    await create_restored_topics(broker, "twice.", 2)
    await restore(RestoreSettings(broker, "twice.", archive))
    with pytest.raises(ArchiveError, match=r"twice\.rollouts/0 holds 1200 records already"):
        await restore(RestoreSettings(broker, "twice.", archive))


async def test_an_archive_without_its_beginning_is_refused_unless_told_to_fill(broker: str, tmp_path: Path) -> None:
    archive = _archive(tmp_path / "archive", first=40)
    await create_restored_topics(broker, "gap.", 2)
    with pytest.raises(ArchiveError, match=r"rollouts/0 begins at offset 40, .*--fill-gaps"):
        await restore(RestoreSettings(broker, "gap.", archive))
    written = await restore(RestoreSettings(broker, "gap.", archive, fill_gaps=True))
    assert written == 1200 + 1201 + 3
    records = [record async for record in read_all(broker, "gap.rollouts", 0)]
    assert [record.offset for record in records] == list(range(1240))
    assert {record.headers for record in records[:40]} == {((FILLER_HEADER, b"1"),)}
    expected = _records(Topic.ROLLOUTS, 0, 1200, first=40)
    assert [record._replace(topic="rods.rollouts") for record in records[40:]] == expected


async def test_nothing_behind_a_cut_is_written(broker: str, tmp_path: Path) -> None:
    archive = _archive(tmp_path / "archive")
    cut = record_cut(archive, "epoch-1", {(Topic.ROLLOUTS, 0): 700, (Topic.ROLLOUTS, 1): 0, (Topic.POOL, 0): 3})
    await create_restored_topics(broker, "cut.", 2)
    assert await restore(RestoreSettings(broker, "cut.", archive, cut)) == 703
    again = await _archive_again(broker, "cut.", tmp_path / "again")
    assert len(list(read_archive(again, Topic.ROLLOUTS))) == 700


async def test_a_broken_archive_is_not_restored_as_far_as_it_goes(broker: str, tmp_path: Path) -> None:
    archive = _archive(tmp_path / "archive")
    last = sorted((archive / "rollouts" / "00001").glob("*.avro"))[-1]
    last.write_bytes(last.read_bytes()[:-1])
    await create_restored_topics(broker, "broken.", 2)
    with pytest.raises(ArchiveError, match="another size"):
        await restore(RestoreSettings(broker, "broken.", archive))


async def test_topics_that_would_expire_what_is_old_are_refused_where_the_broker_does_not_change_them(
    broker: str,
) -> None:
    await create_topics(broker, "expiring.", 2)
    with pytest.raises(UserError, match=r"expiring\.trajectories expires old records"):
        await create_restored_topics(broker, "expiring.", 2)


async def test_topics_with_another_number_of_partitions_are_refused(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "three.", 3)
    with pytest.raises(UserError, match="has 3 partitions where 2"):
        await create_restored_topics(broker, "three.", 2)
