"""Topics on Apache Kafka itself, which, unlike the embedded broker, judges every setting in the topics file."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from rods.broker import create_topics, free_port, wait_for_broker
from rods.errors import UserError
from schemas.topics import Topic
from streams.log_reader import end_offsets, log_producer, read_all, send, send_all

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
auto.create.topics.enable=false
"""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home, folder = os.environ.get("KAFKA_HOME"), tmp_path_factory.mktemp("kafka")
    if home is None:
        pytest.skip("KAFKA_HOME is not set")
    port, controller = free_port(), free_port()
    config = folder / "server.properties"
    config.write_text(PROPERTIES.format(port=port, controller=controller, data=folder / "data"))
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{Path(home).resolve()}/libs/*"]
    java.insert(1, f"-Dlog4j2.configurationFile={Path(home).resolve()}/log4j2.yaml")
    tool = [*java, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(config)]
    subprocess.run(tool, check=True, capture_output=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)
    try:
        wait_for_broker(f"127.0.0.1:{port}", 60)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


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
