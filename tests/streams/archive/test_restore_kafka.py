"""On Apache Kafka, which expires by age, a restored log of years ago stays.

The broker looks for what has expired twice a second, and a topic that keeps seven days shows that it does: only when
that one has lost records as old, twice over, has every other topic been looked at since it was written.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from eventlog.client import log_producer
from eventlog.reader import read_all
from rods.brokers import kafka as kafka_broker
from rods.brokers.embedded import create_topics
from rods.brokers.kafka import KafkaBroker, broker_properties
from rods.brokers.restored_topics import create_restored_topics
from schemas.topics import Topic
from streams.archive.restore import RestoreSettings, restore
from tests.archives import record, seal

OLD = 1_000_000_000_000
COUNT = 300
LOOKS = "log.retention.check.interval.ms=500\nlog.initial.task.delay.ms=0\n"
SEVEN_DAYS = str(7 * 24 * 3600 * 1000)
HELD = (Topic.TRAJECTORIES, Topic.POOL)
GUARD = 240.0
"""Seconds after which a broker that expires nothing is given up."""


def _eager(data: Path, port: int, controller: int) -> str:
    return broker_properties(data, port, controller) + LOOKS


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_broker, "broker_properties", _eager)
        with KafkaBroker(folder, folder / "log") as broker:
            yield broker.address


def _archive(folder: Path) -> Path:
    for topic in Topic:
        records = [record(offset, topic=topic) for offset in range(COUNT if topic in HELD else 0)]
        seal(folder, topic, 0, [old._replace(timestamp=OLD + old.offset) for old in records])
    return folder


async def _lost(broker: str, topic: str) -> None:
    """Writes old records to a topic that keeps seven days, and waits until the broker has expired them."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": SEVEN_DAYS})])
    finally:
        await admin.close()
    async with log_producer(broker) as producer:
        for number in range(COUNT):
            await producer.send(topic, b"v", partition=0, timestamp_ms=OLD + number)
        await producer.flush()
    place = TopicPartition(topic, 0)
    async with asyncio.timeout(GUARD), AIOKafkaConsumer(bootstrap_servers=broker, group_id=None) as consumer:
        while (await consumer.beginning_offsets([place]))[place] < COUNT:
            await asyncio.sleep(0.1)


async def _retentions(broker: str, prefix: str) -> dict[str, str]:
    """Each topic's described retention."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()
    try:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic.named(prefix)) for topic in Topic]
        answers = [found for answer in await admin.describe_configs(asked) for found in answer.resources]
    finally:
        await admin.close()
    return {found[3]: next(entry[1] for entry in found[4] if entry[0] == "retention.ms") for found in answers}


@pytest.mark.kafka
@pytest.mark.parametrize("made_before", [False, True])
async def test_old_records_are_not_expired_on_arrival(kafka: str, tmp_path: Path, made_before: bool) -> None:
    prefix = f"old-{made_before}."
    if made_before:
        await create_topics(kafka, prefix, 1)
        assert (await _retentions(kafka, prefix))[Topic.TRAJECTORIES.named(prefix)] == SEVEN_DAYS
    await create_restored_topics(kafka, prefix, 1)
    assert await _retentions(kafka, prefix) == {topic.named(prefix): "-1" for topic in Topic}
    assert await restore(RestoreSettings(kafka, prefix, _archive(tmp_path))) == len(HELD) * COUNT
    for control in ("first", "second"):
        await _lost(kafka, f"{control}-{made_before}")
    for topic in HELD:
        records = [kept async for kept in read_all(kafka, topic.named(prefix), 0)]
        assert [(kept.offset, kept.timestamp) for kept in records] == [(n, OLD + n) for n in range(COUNT)]
