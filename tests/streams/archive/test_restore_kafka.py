"""On Apache Kafka, which expires by age, a restored log of years ago stays."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rods.broker import create_topics
from rods.kafka_broker import KafkaBroker
from rods.restored_topics import create_restored_topics
from schemas.topics import Topic
from streams.archive.partition import PartitionArchive
from streams.archive.restore import RestoreSettings, restore
from streams.log_reader import LogRecord, read_all

OLD = 1_000_000_000_000
COUNT = 300


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(folder, folder / "log") as broker:
        yield broker.address


def _archive(folder: Path) -> Path:
    for topic in Topic:
        archive = PartitionArchive(folder, topic, 0)
        for offset in range(COUNT if topic in (Topic.TRAJECTORIES, Topic.POOL) else 0):
            archive.add(LogRecord(topic.named("rods."), 0, offset, OLD + offset, b"k", b"v", ()), 0.0)
        archive.seal()
    return folder


@pytest.mark.kafka
@pytest.mark.parametrize("made_before", [False, True])
async def test_old_records_are_not_expired_on_arrival(kafka: str, tmp_path: Path, made_before: bool) -> None:
    prefix = f"old-{made_before}."
    if made_before:
        await create_topics(kafka, prefix, 1)
    await create_restored_topics(kafka, prefix, 1)
    assert await restore(RestoreSettings(kafka, prefix, _archive(tmp_path))) == 2 * COUNT
    await asyncio.sleep(3)
    for topic in (Topic.TRAJECTORIES, Topic.POOL):
        records = [record async for record in read_all(kafka, topic.named(prefix), 0)]
        assert [(record.offset, record.timestamp) for record in records] == [(n, OLD + n) for n in range(COUNT)]
