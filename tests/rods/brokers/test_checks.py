"""`rods doctor` on live brokers: what works is shown by doing it, and what is degraded is named."""

import asyncio

import pytest

from eventlog.connection import Connection
from rods.brokers.checks import examine_broker
from rods.brokers.embedded import create_topics
from rods.brokers.topic_admin import TopicAdmin
from rods.diagnosis import Condition, Diagnosis
from schemas.topics import Topic

CHECKS = [
    *("versions", "replication", "config access", "transactions"),
    *("read_committed", "join time", "message size", "end offsets", "retention"),
]


async def degraded(connection: Connection, prefix: str = "rods.") -> dict[str, Diagnosis]:
    findings = await examine_broker(connection, prefix, 4)
    assert [finding.check for finding in findings] == CHECKS
    assert [finding for finding in findings if finding.health is Condition.BROKEN] == []
    return {finding.check: finding for finding in findings if finding.health is Condition.DEGRADED}


async def test_the_embedded_brokers_shortcomings_are_named(broker: str) -> None:
    found = await degraded(Connection(broker))
    async with TopicAdmin(broker) as admin:
        assert [name for name in await admin.names() if "doctor" in name] == []
    assert set(found) == {
        *("versions", "replication", "transactions", "read_committed", "join time", "end offsets"),
    }
    assert "CreatePartitions" in found["versions"].detail
    assert "high watermark" in found["end offsets"].detail


@pytest.mark.kafka
async def test_a_single_kafka_lacks_replicas_alone(kafka: str) -> None:
    assert set(await degraded(Connection(kafka))) == {"replication"}
    async with TopicAdmin(kafka) as admin:
        assert [name for name in await admin.names() if "doctor" in name] == []


@pytest.mark.kafka
async def test_a_retention_that_would_lose_the_log_is_named(kafka: str) -> None:
    specs = await create_topics(kafka, "kept.", 4)
    assert "retention" not in await degraded(Connection(kafka), "kept.")
    async with TopicAdmin(kafka) as admin:
        [seals] = [spec for spec in specs if spec.topic is Topic.SEALS]
        await admin.delete([seals.name])
        while seals.name in await admin.names():
            await asyncio.sleep(0.1)
        shorter = type(seals)(seals.topic, seals.name, 1, 1, {**seals.config, "retention.ms": "60000"})
        await admin.create([shorter])
    found = (await degraded(Connection(kafka), "kept."))["retention"]
    assert "kept.seals retention.ms=60000, not -1" in found.detail
    assert "rods topics apply" in found.detail


async def test_a_broker_that_is_gone_is_broken_and_not_an_error() -> None:
    findings = await examine_broker(Connection("127.0.0.1:1"), "rods.", 4)
    assert {finding.health for finding in findings} == {Condition.BROKEN}
