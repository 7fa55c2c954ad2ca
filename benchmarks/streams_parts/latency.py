"""From the last barrier's acknowledgement to SelectionClosed, while groups arrive at a steady rate."""

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from benchmarks.streams_parts.load import step_events
from eventlog.client import log_producer
from eventlog.reader import LogTail
from rods.brokers.embedded import create_topics
from schemas.codec import decode, encode, kind_of_frame
from schemas.rollouts import RolloutFinished
from schemas.seals import SelectionClosed
from schemas.topics import Topic

WARM_STEPS = 20


async def latencies(broker: str, prefix: str, *, rate: int, step: int, steps: int, partitions: int) -> list[float]:
    """Seconds, one a step after the first `WARM_STEPS`. rate: groups a second; step: groups in one."""
    await create_topics(broker, prefix, partitions)
    closed: dict[int, float] = {}
    written: dict[int, float] = {}
    total = WARM_STEPS + steps
    with service(broker, prefix, partitions):
        place = (Topic.SEALS.named(prefix), 0)
        async with LogTail(broker, {place: None}) as tail, log_producer(broker, linger_ms=0) as producer:
            joined = asyncio.Event()
            writing = asyncio.create_task(_write(producer, prefix, written, joined, rate, step, total, partitions))
            end = time.monotonic() + 120 + 4 * total * step / rate
            while len(closed) < total and time.monotonic() < end:
                if closed:
                    joined.set()
                for record in await tail.poll(0.005):
                    if kind_of_frame(record.value or b"") == SelectionClosed.KIND:
                        closed.setdefault(decode(record.value or b"").step, time.monotonic())
            await writing
    return [closed[number] - written[number] for number in range(WARM_STEPS + 1, total + 1)]


async def _write(
    producer: AIOKafkaProducer,
    prefix: str,
    written: dict[int, float],
    joined: asyncio.Event,
    rate: int,
    step: int,
    total: int,
    partitions: int,
) -> None:
    """The first step, and once the service has answered it, the others at their rate."""
    rng, topic, due = random.Random(5), Topic.ROLLOUTS.named(prefix), time.monotonic()
    for number in range(1, total + 1):
        waiting: list[Awaitable[Any]] = []
        events = step_events([f"task-{index:06d}" for index in range(step)], number, partitions, rng)
        for partition, key, event in events:
            if isinstance(event, RolloutFinished):
                due += 1 / rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            elif waiting:
                await asyncio.gather(*waiting)
                waiting = []
            waiting.append(await producer.send(topic, encode(event), key=key.encode(), partition=partition))
        await asyncio.gather(*waiting)
        written[number] = time.monotonic()
        if number == 1:
            await joined.wait()
            due = time.monotonic()


@contextmanager
def service(broker: str, prefix: str, partitions: int) -> "Iterator[subprocess.Popen[bytes]]":
    """The streams service, with a state folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = f"StreamsSettings({broker!r}, {prefix!r}, {partitions}, Path({str(Path(folder))!r}))"
        code = f"from pathlib import Path; from streams.service.worker import *; run_streams({settings})"
        process = subprocess.Popen([sys.executable, "-c", code])
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
