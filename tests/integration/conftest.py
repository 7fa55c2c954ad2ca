"""A live broker for tests: events in, events out, and real worker processes that end with the test."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from rods.brokers.embedded import create_topics
from schemas.codec import decode, encode
from schemas.envelope import Event, stamp
from schemas.topics import Topic
from tests.integration.live_broker import LiveBrokers, Served
from tests.integration.loop import PATIENT, Loop

PARTITIONS = 2


class Fact(NamedTuple):
    """An event where it lies."""

    partition: int
    offset: int
    event: Any


class Wire:
    """The topics of one run on a broker of its own."""

    def __init__(self, served: Served, producer: AIOKafkaProducer) -> None:
        self.address, self.prefix = served
        self._producer = producer
        self._processes: list[subprocess.Popen[bytes]] = []

    async def put(self, topic: Topic, event: Event, partition: int = 0) -> int:
        """Writes an event, stamped as a learner would; its offset."""
        stamped = stamp(event, run_id="run", occurred_at=1_700_000_000_000_000, producer="learner")
        return await self.put_bytes(topic, encode(stamped), partition)

    async def put_bytes(self, topic: Topic, value: bytes, partition: int = 0) -> int:
        """Writes any bytes; their offset."""
        written = await self._producer.send_and_wait(topic.named(self.prefix), value, partition=partition)
        return int(written.offset)

    async def read(self, topic: Topic, enough: Callable[[Sequence[Fact]], bool]) -> list[Fact]:
        """Reads a topic from its beginning until there is enough. Fails when a worker has ended meanwhile."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self.address, max_partition_fetch_bytes=9 * 1024 * 1024)
        partitions = [TopicPartition(topic.named(self.prefix), n) for n in range(PARTITIONS if topic.by_task else 1)]
        consumer.assign(partitions)
        await consumer.start()
        facts: list[Fact] = []
        try:
            await consumer.seek_to_beginning(*partitions)
            while not enough(facts):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    facts += [Fact(r.partition, r.offset, decode(r.value)) for r in records]
                self._all_alive()
        finally:
            await consumer.stop()
        return facts

    def start(self, function: str, module: str, settings: str) -> subprocess.Popen[bytes]:
        """A process that calls ``function(settings)`` of a module; `settings` is source text for that module."""
        code = f"import logging; logging.basicConfig(level='WARNING')\nfrom {module} import *\n{function}({settings})"
        process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.getcwd()})
        self._processes.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Ends a process as a crash would."""
        process.kill()
        process.wait()
        self._processes.remove(process)

    def end(self, process: subprocess.Popen[bytes]) -> int:
        """Asks a process to end; its exit code."""
        process.send_signal(signal.SIGTERM)
        self._processes.remove(process)
        return process.wait()

    def kill_all(self) -> None:
        for process in list(self._processes):
            self.kill(process)

    def _all_alive(self) -> None:
        assert all(process.poll() is None for process in self._processes), "a worker ended by itself"


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBrokers]:
    """Brokers as `TEST_BROKER` asks for."""
    with LiveBrokers(tmp_path_factory.mktemp("live")) as brokers:
        yield brokers


@pytest.fixture
async def wire(live: LiveBrokers, tmp_path: Path) -> AsyncIterator[Wire]:
    with live.serve(tmp_path) as served:
        await create_topics(served.address, served.prefix, PARTITIONS)
        producer = AIOKafkaProducer(bootstrap_servers=served.address, acks="all", max_request_size=9 * 1024 * 1024)
        await producer.start()
        wire = Wire(served, producer)
        try:
            yield wire
        finally:
            wire.kill_all()
            await asyncio.wait_for(producer.stop(), 240)


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short, patient run on the embedded broker, for those on other brokers to compare with."""
    folder = tmp_path_factory.mktemp("embedded") / "run"
    Loop(folder, *PATIENT, epochs=2).result()
    return folder


@pytest.fixture
def loops() -> Iterator[list[Loop]]:
    """Runs that end with the test."""
    started: list[Loop] = []
    yield started
    for loop in started:
        loop.end()
