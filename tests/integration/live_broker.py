"""The broker that the services' integration tests run on: the embedded one, or Apache Kafka (`make test-kafka`)."""

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from rods.brokers.embedded import EmbeddedBroker
from rods.brokers.kafka import KafkaBroker

VARIABLE = "TEST_BROKER"


class Served(NamedTuple):
    """prefix: of topics and groups that no other test has."""

    address: str
    prefix: str


class LiveBrokers:
    """A fresh embedded broker for each that asks; of Kafka, which takes seconds to start, one for all. Context manager.

    folder: for Kafka's data.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._kafka: KafkaBroker | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> "LiveBrokers":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def serve(self, folder: Path) -> Iterator[Served]:
        """A broker that answers inside the block. folder: for the log of the embedded one."""
        asked = os.environ.get(VARIABLE, "embedded")
        assert asked in ("embedded", "kafka"), f"{VARIABLE} is embedded or kafka"
        if asked == "embedded":
            with EmbeddedBroker(folder / "broker.log") as embedded:
                yield Served(embedded.address, "rods.")
            return
        if self._kafka is None:
            kafka = KafkaBroker(self._folder / "kafka", self._folder / "broker.log")
            self._kafka = self._stack.enter_context(kafka)
        yield Served(self._kafka.address, f"rods-{next(self._numbers)}.")
