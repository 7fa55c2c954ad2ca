"""Topics on Apache Kafka itself, which, unlike the embedded broker, judges every setting in the topics file."""

from collections.abc import Iterator

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from eventlog.client import log_producer
from eventlog.reader import end_offsets, read_all
from eventlog.writer import send
from rods.brokers.embedded import create_topics
from rods.brokers.kafka import KafkaBroker
from rods.errors import UserError
from schemas.topics import Topic
from tests.log_writing import send_all


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(folder, folder / "log") as broker:
        yield broker.address


@pytest.mark.kafka
async def test_kafka_takes_every_topic_with_its_settings(kafka: str) -> None:
    await create_topics(kafka, "t.", 3)
    await create_topics(kafka, "t.", 3)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, Topic.TRAJECTORIES.named("t."))
        [response] = await admin.describe_configs([resource])
        described = await admin.describe_topics([topic.named("t.") for topic in Topic])
    finally:
        await admin.close()
    config = {entry[0]: entry[1] for entry in response.resources[0][4]}
    assert config["retention.ms"] == "604800000"
    assert config["max.message.bytes"] == "8454144"
    assert config["min.insync.replicas"] == "1"
    counts = {topic["topic"]: len(topic["partitions"]) for topic in described}
    assert counts == {topic.named("t."): 3 if topic.by_task else 1 for topic in Topic}
    with pytest.raises(UserError, match="has 3 partitions where 4"):
        await create_topics(kafka, "t.", 4)


@pytest.mark.kafka
async def test_partitions_are_read_to_their_end_on_kafka_too(kafka: str) -> None:
    await create_topics(kafka, "r.", 2)
    async with log_producer(kafka) as producer:
        await send_all(producer, "r.rollouts", 1, [("k", b"v")] * 777)
        await send(producer, "r.trajectories", 0, "k", bytes(8 * 1024 * 1024))
    assert await end_offsets(kafka, [("r.rollouts", 0), ("r.rollouts", 1)]) == {
        ("r.rollouts", 0): 0,
        ("r.rollouts", 1): 777,
    }
    assert [record.offset async for record in read_all(kafka, "r.rollouts", 1)] == list(range(777))
    assert [len(record.value or b"") async for record in read_all(kafka, "r.trajectories", 0)] == [8 * 1024 * 1024]
