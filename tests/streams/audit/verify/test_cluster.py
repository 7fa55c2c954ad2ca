"""`verify` on the topics of a live cluster: what an archive of the same records would be told, but for the chain."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eventlog.client import log_producer
from eventlog.reader import LogRecord
from rods.brokers.embedded import EmbeddedBroker, create_topics
from rods.cli.main import app
from rods.errors import UserError
from schemas.codec import decode, encode
from schemas.rollouts import RolloutFinished, TrajectoryRecorded
from schemas.topics import Topic
from streams.archive.read import archived_partitions, read_partition
from streams.audit.load.source import ClusterSource
from streams.audit.verify.archive import Verification, verify_archive
from streams.audit.verify.cluster import verify_cluster
from streams.audit.verify.fault import FaultKind
from tests.streams.audit.forge import GOLDEN

ARCHIVE = GOLDEN / "defaults"
Extra = tuple[Topic, int, bytes | None, bytes | None]


async def fill(address: str, prefix: str, *extra: Extra, partitions: int = 4) -> None:
    """The golden archive's records under a prefix, and others behind them."""
    await create_topics(address, prefix, partitions)
    async with log_producer(address) as producer:
        for topic in Topic:
            for partition in archived_partitions(ARCHIVE, topic):
                for record in read_partition(ARCHIVE, topic, partition):
                    await producer.send(topic.named(prefix), record.value, key=record.key, partition=partition)
        for topic, partition, key, value in extra:
            await producer.send(topic.named(prefix), value, key=key, partition=partition)
        await producer.flush()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker") / "log") as broker:
        asyncio.run(fill(broker.address, "whole."))
        yield broker


def verified(broker: EmbeddedBroker, prefix: str) -> Verification:
    return verify_cluster(ClusterSource.open(broker.address, prefix))


def first(topic: Topic, kind: type[Any]) -> tuple[LogRecord, Any]:
    """The first record of a kind in partition 0, and its event."""
    for record in read_partition(ARCHIVE, topic, 0):
        event = decode(record.value or b"")
        if isinstance(event, kind):
            return record, event
    raise AssertionError(kind)


def test_a_whole_log_counts_what_its_archive_counts(broker: EmbeddedBroker) -> None:
    live, archived = verified(broker, "whole."), verify_archive(ARCHIVE)
    assert live.faults == []
    assert (live.records, live.attempts, live.trajectories) == (
        archived.records,
        archived.attempts,
        archived.trajectories,
    )
    assert (live.run, live.partitions, live.chained) == (archived.run, archived.partitions, False)


def test_each_fault_is_told_with_its_partition_and_offset(broker: EmbeddedBroker) -> None:
    record, result = first(Topic.ROLLOUTS, RolloutFinished)
    kept, trajectory = first(Topic.TRAJECTORIES, TrajectoryRecorded)
    end = 1 + max(record.offset for record in read_partition(ARCHIVE, Topic.ROLLOUTS, 0))
    kept_end = 1 + max(record.offset for record in read_partition(ARCHIVE, Topic.TRAJECTORIES, 0))
    edited = replace(trajectory, messages=trajectory.messages + " ")
    extra: list[tuple[Extra, FaultKind]] = [
        ((Topic.ROLLOUTS, 0, record.key, b"\xc3\x01" + bytes(8) + b"x"), FaultKind.UNKNOWN_SCHEMA),
        ((Topic.ROLLOUTS, 0, record.key, b"noise"), FaultKind.UNDECODABLE),
        ((Topic.ROLLOUTS, 0, record.key, None), FaultKind.UNDECODABLE),
        ((Topic.ROLLOUTS, 0, record.key, kept.value), FaultKind.MISPLACED),
        ((Topic.ROLLOUTS, 0, b"another", record.value), FaultKind.MISPLACED),
        ((Topic.ROLLOUTS, 0, record.key, encode(replace(result, purpose="fun"))), FaultKind.VALUE),
    ]
    added = [put for put, _ in extra] + [(Topic.TRAJECTORIES, 0, kept.key, encode(edited))]
    asyncio.run(fill(broker.address, "spoiled.", *added, (Topic.ROLLOUTS, 0, record.key, record.value)))
    found = verified(broker, "spoiled.")
    told = [(fault.file, fault.kind, fault.offset) for fault in found.faults]
    expected = [("spoiled.rollouts/0", kind, end + number) for number, (_, kind) in enumerate(extra)]
    assert told == [*expected, ("spoiled.trajectories/0", FaultKind.TRAJECTORY, kept_end)]
    assert found.repeated == verify_archive(ARCHIVE).repeated + 3


def test_partitions_that_are_missing_or_too_many_are_faults(broker: EmbeddedBroker) -> None:
    asyncio.run(fill(broker.address, "wider.", partitions=5))
    found = {(fault.kind, fault.file) for fault in verified(broker, "wider.").faults}
    assert found == {(FaultKind.STRAY, f"{topic.named('wider.')}/4") for topic in Topic if topic.by_task}


class Retained:
    """A cluster that no longer has what lies before an offset of some topics."""

    def __init__(self, source: ClusterSource, first: int, *topics: Topic) -> None:
        self.ends, self.prefix, self.partitions, self.end = source.ends, source.prefix, source.partitions, source.end
        self._source, self._first, self._topics = source, first, topics

    def records(self, topic: Topic, partition: int, start: int = 0) -> Iterator[LogRecord]:
        for record in self._source.records(topic, partition, start):
            if topic not in self._topics or record.offset >= self._first:
                yield record


def test_a_beginning_that_is_gone_is_a_fault_but_for_trajectories(broker: EmbeddedBroker) -> None:
    source = ClusterSource.open(broker.address, "whole.")
    short: Any = Retained(source, 3, Topic.TRAJECTORIES)
    assert verify_cluster(short).faults == []
    empty: Any = Retained(source, 1_000_000, Topic.TRAJECTORIES)
    assert verify_cluster(empty).faults == []
    broken: Any = Retained(source, 3, Topic.SEALS)
    assert [(fault.kind, fault.offset, fault.last) for fault in verify_cluster(broken).faults] == [
        (FaultKind.GAP, 0, 2)
    ]
    gone: Any = Retained(source, 1_000_000, Topic.SEALS)
    (fault,) = verify_cluster(gone).faults
    assert (fault.kind, fault.offset, fault.last) == (FaultKind.GAP, 0, source.end(Topic.SEALS, 0) - 1)


def test_the_command_reads_a_cluster(broker: EmbeddedBroker, tmp_path: Path) -> None:
    words = ["audit", "verify", "--broker", broker.address, "--prefix", "whole."]
    shown = CliRunner().invoke(app, words)
    assert (shown.exit_code, "partitions of a live log" in shown.stdout) == (0, True), shown.output
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert (document["sound"], document["chained"], document["segments"]) == (True, False, 0)
    refused = CliRunner().invoke(app, [*words, "--heads", str(tmp_path / "heads.json")])
    assert isinstance(refused.exception, UserError)
    assert "heads are those of an archive" in str(refused.exception)
