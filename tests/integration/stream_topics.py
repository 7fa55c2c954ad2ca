"""A run's topics on a live broker as the streams service meets them: results and barriers in, seals and seeds out."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from schemas.codec import decode, encode
from schemas.errors import UndecodableError
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed
from schemas.topics import Topic
from streams.measure.fold import evolve, skip
from streams.measure.seal import join_chunks
from streams.measure.state import MeasureState
from streams.select.fold import SelectState
from streams.select.fold import evolve as select
from tests.integration.holding import Holding, held
from tests.integration.live_broker import Served


class Record(NamedTuple):
    """A message where it lies."""

    partition: int
    offset: int
    value: bytes


class StreamTopics:
    """Writes to and reads from the topics of a run with N partitions."""

    def __init__(self, served: Served, partitions: int, producer: AIOKafkaProducer) -> None:
        self.address, self.prefix = served
        self.partitions = partitions
        self._producer = producer

    async def put(self, event: Any, partition: int, topic: Topic = Topic.ROLLOUTS) -> int:
        value = event if isinstance(event, bytes) else encode(event)
        written = await self._producer.send_and_wait(topic.named(self.prefix), value, partition=partition)
        return int(written.offset)

    async def put_all(self, events: Sequence[Any], partition: int, topic: Topic = Topic.ROLLOUTS) -> None:
        name = topic.named(self.prefix)
        sent = [await self._producer.send(name, encode(event), partition=partition) for event in events]
        await asyncio.gather(*sent)

    async def read(self, topic: Topic, enough: Callable[[Sequence[Record]], bool]) -> list[Record]:
        """A topic from its beginning until there is enough."""
        number = self.partitions if topic.by_task else 1
        partitions = [TopicPartition(topic.named(self.prefix), n) for n in range(number)]
        consumer = AIOKafkaConsumer(bootstrap_servers=self.address, max_partition_fetch_bytes=9 * 1024 * 1024)
        consumer.assign(partitions)
        await consumer.start()
        records: list[Record] = []
        try:
            await consumer.seek_to_beginning(*partitions)
            while not enough(records):
                for batch in (await consumer.getmany(timeout_ms=50)).values():
                    records += [Record(r.partition, r.offset, r.value) for r in batch]
        finally:
            await consumer.stop()
        return records

    async def events(self, topic: Topic, number: int, kind: type[Any]) -> list[Any]:
        """The events of a kind, once there are as many different ones."""

        def enough(records: Sequence[Record]) -> bool:
            return len({r.value for r in records if isinstance(decoded(r.value), kind)}) >= number

        return [e for r in await self.read(topic, enough) if isinstance(e := decoded(r.value), kind)]

    async def all(self, topic: Topic) -> list[Record]:
        """A topic up to its end now."""
        number = self.partitions if topic.by_task else 1
        partitions = [TopicPartition(topic.named(self.prefix), n) for n in range(number)]
        consumer = AIOKafkaConsumer(bootstrap_servers=self.address)
        await consumer.start()
        ends = sum((await consumer.end_offsets(partitions)).values())
        await consumer.stop()
        return await self.read(topic, lambda records: len(records) >= ends)


def decoded(value: bytes) -> Any:
    """The event, or None where there is none."""
    try:
        return decode(value)
    except UndecodableError:
        return None


class StreamsWorker:
    """The streams service as a process of its own, until it is ended or killed. folder: its own."""

    def __init__(self, topics: StreamTopics, folder: Path, metrics_port: int = 0) -> None:
        self._sign = folder / "sign"
        folder.mkdir()
        settings = {"broker": topics.address, "prefix": topics.prefix, "partitions": topics.partitions}
        settings |= {"data_dir": str(folder / "data"), "sign": str(self._sign), "metrics_port": metrics_port}
        command = [sys.executable, "-m", "tests.integration.faults.worker", json.dumps(settings)]
        self.process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.getcwd()})

    @property
    def held(self) -> Holding | None:
        """What it has of the group now."""
        return held(self._sign.with_suffix(".held"), self.process.pid if self.process.poll() is None else None)

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As a crash would. Does nothing where it has ended."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Asks it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def plain_seals(rollouts: Sequence[Record], partitions: int) -> list[PartitionSealed]:
    """What the log of `rods.rollouts` says from offset 0, in the order of steps and partitions."""
    seals = []
    for partition in range(partitions):
        state = MeasureState(partition)
        for record in sorted(r for r in rollouts if r.partition == partition):
            event = decoded(record.value)
            if event is None:
                state = skip(state, record.offset)
                continue
            evolved = evolve(state, record.offset, event)
            state = evolved.state
            seals += [join_chunks(evolved.seals)] if evolved.seals else []
    return sorted(seals, key=lambda seal: (seal.step, seal.partition))


def plain_selections(seals: Sequence[PartitionSealed]) -> tuple[list[SelectionClosed], list[BoundarySeedSelected]]:
    """What the seals say, and the seeds."""
    log: list[Any] = list(seals)
    state, seeds = SelectState(), []
    for offset, event in enumerate(log):
        selected = select(state, offset, event)
        log += [selected.proposed] if selected.proposed else []
        seeds += [seed.event for seed in selected.seeds]
        state = selected.state
    return log[len(seals) :], seeds
