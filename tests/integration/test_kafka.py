"""A whole run on Apache Kafka decides as on the embedded broker, and its log is still there afterwards."""

from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from eventlog.reader import end_offsets
from rods.brokers.kafka import KafkaBroker
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.archive.restore import archived_partition_count
from streams.archive.worker import places
from tests.integration.kafka_nodes import cluster
from tests.integration.loop import PATIENT, Loop, archived, digests, first

pytestmark = pytest.mark.kafka


async def test_a_run_whose_own_kafka_is_killed_decides_alike_and_its_log_survives_it(
    embedded: Path, tmp_path: Path, loops: list[Loop]
) -> None:
    loop = Loop(tmp_path / "run", "--broker", "kafka", *PATIENT, epochs=2)
    loops.append(loop)
    await first(loop.address, Topic.SEALS, lambda event: isinstance(event, PartitionSealed))
    loop.kill(loop.broker_pid())
    assert loop.result()["restarts"]["broker"] == 1, "a worker may end too, where its commit found nobody"
    assert digests(tmp_path / "run") == digests(embedded)
    logs = places("rods.", archived_partition_count(tmp_path / "run" / "archive"))
    with KafkaBroker(tmp_path / "run" / "kafka", tmp_path / "log") as broker:
        ends = await end_offsets(broker.address, list(logs))
    kept = dict.fromkeys(logs, 0)
    for topic in Topic:
        for record, _ in archived(tmp_path / "run", topic):
            kept[topic.named("rods."), record.partition] += 1
    assert ends == kept
    assert sum(log[0] == Topic.ROLLOUTS.named("rods.") and count > 0 for log, count in kept.items()) > 1


async def test_one_of_three_brokers_dies_and_the_run_decides_alike(
    embedded: Path, tmp_path: Path, loops: list[Loop]
) -> None:
    with cluster(tmp_path / "cluster") as brokers:
        loop = Loop(tmp_path / "run", "--broker", brokers.addresses, *PATIENT, epochs=2)
        loops.append(loop)
        await first(brokers.addresses, Topic.SEALS, lambda event: isinstance(event, PartitionSealed))
        admin = AIOKafkaAdminClient(bootstrap_servers=brokers.addresses)
        await admin.start()
        described = await admin.describe_topics([Topic.SEALS.named("rods."), Topic.ROLLOUTS.named("rods.")])
        await admin.close()
        partitions = [partition for topic in described for partition in topic["partitions"]]
        assert {len(partition["replicas"]) for partition in partitions} == {3}
        brokers.node(partitions[0]["leader"]).kill()
        loop.result()
    assert digests(tmp_path / "run") == digests(embedded)
