"""The broker that the services' integration tests run on: the embedded one, or Apache Kafka (`make test-kafka`)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rods.broker import EmbeddedBroker
from rods.kafka_broker import KafkaBroker

VARIABLE = "TEST_BROKER"


@contextmanager
def live_broker(folder: Path) -> Iterator[str]:
    """The address of a fresh broker, which ends with the block."""
    asked = os.environ.get(VARIABLE, "embedded")
    assert asked in ("embedded", "kafka"), f"{VARIABLE} is embedded or kafka"
    log_file = folder / "broker.log"
    with KafkaBroker(folder / "kafka", log_file) if asked == "kafka" else EmbeddedBroker(log_file) as broker:
        yield broker.address
