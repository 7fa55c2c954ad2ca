"""One port, two adapters: an archive folder, and the topics of a live cluster that hold the same records."""

import asyncio
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eventlog.client import log_producer
from rods.brokers.embedded import create_topics
from rods.cli.main import app
from rods.errors import UserError
from schemas.topics import Topic
from streams.archive.read import archived_partitions, read_partition
from streams.audit.compare.runs import compare_runs
from streams.audit.drift.figures import drift
from streams.audit.errors import AuditError
from streams.audit.load.columns import ColumnStore
from streams.audit.load.epochs import run_facts
from streams.audit.load.source import ArchiveSource, ClusterSource, LogSource, events
from streams.audit.overlay import Overlay
from streams.audit.recompute.pool_epoch import pool_of
from streams.audit.replay import ReplayOptions, replay
from streams.audit.trace import lineage
from streams.audit.verify.cluster import verify_cluster
from streams.audit.what_if import what_if
from tests.streams.audit.forge import GOLDEN

ARCHIVE = GOLDEN / "windowed"
PREFIX = "audited."


async def _filled(address: str) -> None:
    await create_topics(address, PREFIX, 4)
    async with log_producer(address) as producer:
        for topic in Topic:
            for partition in archived_partitions(ARCHIVE, topic):
                for record in read_partition(ARCHIVE, topic, partition):
                    await producer.send(topic.named(PREFIX), record.value, key=record.key, partition=partition)
        await producer.flush()


@pytest.fixture(scope="module")
def cluster(broker: str) -> LogSource:
    asyncio.run(_filled(broker))
    return ClusterSource.open(broker, PREFIX)


@pytest.fixture(scope="module", params=["archive", "cluster"])
def source(request: pytest.FixtureRequest) -> LogSource:
    """Both adapters, on the same records."""
    if request.param == "archive":
        return ArchiveSource(ARCHIVE)
    found: LogSource = request.getfixturevalue("cluster")
    return found


def test_a_source_gives_the_records_that_were_put_in(source: LogSource) -> None:
    for topic in (Topic.ROLLOUTS, Topic.SEALS, Topic.POOL):
        assert source.partitions(topic) == archived_partitions(ARCHIVE, topic)
        for partition in source.partitions(topic):
            expected = [(r.offset, r.key, r.value) for r in read_partition(ARCHIVE, topic, partition)]
            assert [(r.offset, r.key, r.value) for r in source.records(topic, partition)] == expected
            assert source.end(topic, partition) == len(expected)


def test_a_source_begins_where_it_is_asked_to(source: LogSource) -> None:
    assert [record.offset for record in source.records(Topic.POOL, 0, start=40)][:3] == [40, 41, 42]
    assert "40" in source.place(Topic.POOL, 0, 40)


def test_a_topic_that_a_source_lacks_holds_nothing(tmp_path: Path) -> None:
    for empty in (ArchiveSource(tmp_path), ClusterSource("127.0.0.1:1", PREFIX, {})):
        assert (empty.partitions(Topic.SEALS), empty.end(Topic.SEALS, 0), list(empty.records(Topic.SEALS, 0))) == (
            [],
            0,
            [],
        )


def test_a_cluster_that_has_gone_is_told_in_a_sentence() -> None:
    gone = ClusterSource("127.0.0.1:1", PREFIX, {(Topic.SEALS.named(PREFIX), 0): 5})
    with pytest.raises(AuditError, match=r"audited\.seals/0 cannot be read"):
        next(gone.records(Topic.SEALS, 0))


def test_a_source_can_be_left_before_its_end(source: LogSource) -> None:
    assert next(iter(events(source, Topic.SEALS, 0))).offset == 0


async def test_a_reader_that_is_left_half_way_is_closed_inside_another_loop(source: LogSource) -> None:
    reader = source.records(Topic.SEALS, 0)
    assert next(reader).offset == 0
    assert isinstance(reader, Generator)
    reader.close()


def test_a_partition_that_is_not_there_has_no_end(source: LogSource) -> None:
    assert source.end(Topic.ROLLOUTS, 77) == 0


def test_every_audit_gives_the_same_on_both(cluster: ClusterSource) -> None:
    archive = ArchiveSource(ARCHIVE)
    alone, stories = ReplayOptions(jobs=1), (run_facts(archive), run_facts(cluster))
    assert replay(cluster, alone) == replay(archive, alone)
    assert drift(ColumnStore(cluster), stories[1]) == drift(ColumnStore(archive), stories[0])
    overlay = Overlay.parse(["measure.alpha_low=0.4"])
    assert what_if(cluster, overlay) == what_if(archive, overlay)
    assert pool_of(cluster, 2).header() == pool_of(archive, 2).header()
    another = ArchiveSource(GOLDEN / "retiring")
    for to_epoch in (None, 1):
        contrast = compare_runs(archive, another, to_epoch)
        assert compare_runs(cluster, another, to_epoch) == contrast
        assert not contrast.equal
    assert compare_runs(cluster, archive).equal
    assert [found.kind for found in verify_cluster(cluster).faults] == []
    task = pool_of(archive).recorded.members[0]
    assert lineage(cluster, task) == lineage(archive, task)


def test_two_runs_are_compared_wherever_they_are(cluster: ClusterSource) -> None:
    on_cluster = ("--broker", str(cluster.broker), "--prefix", PREFIX)
    folders = _told("audit", "diff", str(ARCHIVE), str(GOLDEN / "retiring"))
    assert _told("audit", "diff", str(GOLDEN / "retiring"), *on_cluster)["run_ids"] == folders["run_ids"][::-1]
    assert _told("audit", "diff", str(ARCHIVE), *on_cluster)["equal"]
    assert _told("audit", "diff", *on_cluster, "--other-prefix", PREFIX)["equal"]
    assert _told("audit", "diff", *on_cluster, "--other-broker", str(cluster.broker))["equal"]
    for words in ((), (str(ARCHIVE),), on_cluster, (str(ARCHIVE), str(ARCHIVE), *on_cluster), ("--other-prefix", "x.")):
        refused = CliRunner().invoke(app, ["audit", "diff", *words])
        assert isinstance(refused.exception, UserError), refused.output
        assert "name two runs" in str(refused.exception)


def _told(*words: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_what_is_no_archive_and_what_is_no_run_is_one_sentence(tmp_path: Path, cluster: ClusterSource) -> None:
    with pytest.raises(AuditError, match="there is no archive at"):
        ArchiveSource(tmp_path / "nowhere")
    with pytest.raises(AuditError, match="the cluster has no topic under the prefix other"):
        ClusterSource.open(cluster.broker, "other.")
