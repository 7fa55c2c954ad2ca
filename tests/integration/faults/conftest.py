"""The brokers that the fault tests run on: the embedded one, and Apache Kafka where KAFKA_HOME names one."""

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rods.broker import EmbeddedBroker, claim_port
from rods.kafka_broker import KafkaBroker
from tests.integration.faults.bench import Bench, bench

BROKERS = ("embedded", pytest.param("kafka", marks=pytest.mark.kafka))
_numbers = itertools.count()


@pytest.fixture(scope="module", params=BROKERS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Served]":
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "embedded":
        with EmbeddedBroker(folder / "broker.log") as embedded:
            yield embedded
        return
    if not os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME names no Apache Kafka")
    with KafkaBroker(folder / "kafka", folder / "broker.log", claim_port(0)) as kafka:
        yield kafka


@pytest.fixture
async def four(broker: "Served", tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench of four partitions under a prefix of its own."""
    async with bench(broker.address, f"bench-{next(_numbers)}.", 4, tmp_path) as made:
        yield made


Served = EmbeddedBroker | KafkaBroker
