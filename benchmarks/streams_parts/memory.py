"""What the service holds while a run goes on: steps written as a learner writes them, two of them open at a time."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import psutil
from aiokafka import AIOKafkaProducer

from benchmarks.streams_parts.latency import service
from benchmarks.streams_parts.load import Load, steps
from eventlog.client import log_producer
from eventlog.reader import LogTail
from rods.brokers.embedded import create_topics
from schemas.codec import decode, encode, kind_of_frame
from schemas.rollouts import BarrierReached, RolloutFinished
from schemas.seals import SelectionClosed
from schemas.topics import Topic

OPEN_STEPS = 2
STEP_SECONDS = 60.0


class Held(NamedTuple):
    """After so many groups, of which `tasks` were of different tasks: resident bytes of the service."""

    groups: int
    tasks: int
    resident: int


async def held(broker: str, prefix: str, load: Load) -> list[Held]:
    """One entry a step. Raises TimeoutError where a step is not selected within `STEP_SECONDS`."""
    await create_topics(broker, prefix, load.partitions)
    found: list[Held] = []
    with service(broker, prefix, load.partitions) as process:
        async with LogTail(broker, {(Topic.SEALS.named(prefix), 0): None}) as tail, log_producer(broker) as producer:
            closed = 0
            for number, events in enumerate(steps(load), 1):
                await _write(producer, prefix, events)
                end = time.monotonic() + STEP_SECONDS
                while closed <= number - OPEN_STEPS or (number == load.steps and closed < number):
                    if time.monotonic() > end:
                        raise TimeoutError(f"step {closed + 1} was not selected")
                    for record in await tail.poll(0.02):
                        if kind_of_frame(record.value or b"") == SelectionClosed.KIND:
                            closed = max(closed, decode(record.value or b"").step)
                groups = min(number * load.step, load.groups)
                resident = psutil.Process(process.pid).memory_info().rss
                found.append(Held(groups, min(groups, load.tasks), resident))
    return found


async def _write(
    producer: AIOKafkaProducer, prefix: str, events: Sequence[tuple[int, str, RolloutFinished | BarrierReached]]
) -> None:
    topic = Topic.ROLLOUTS.named(prefix)
    sent = [
        await producer.send(topic, encode(event), key=key.encode(), partition=partition)
        for partition, key, event in events
    ]
    for one in sent:
        await one
