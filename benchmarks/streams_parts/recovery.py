"""How long a worker that joins needs for its state over a long log: ``python -m benchmarks.streams_parts.recovery``."""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.streams_parts.load import step_events
from eventlog.client import log_producer
from eventlog.writer import Outgoing, write
from rods.brokers.embedded import EmbeddedBroker, create_topics
from schemas.codec import encode
from schemas.rollouts import BarrierReached
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.measure.fold import evolve as measure
from streams.measure.state import MeasureState
from streams.seals.reader import read_seals
from streams.select.fold import SelectState
from streams.select.fold import evolve as select
from streams.service.settings import StreamsSettings

PARTITIONS = 4


def templates(groups: int) -> list[PartitionSealed]:
    """One seal a partition, with the whole state."""
    states, offsets = [MeasureState(number) for number in range(PARTITIONS)], [0] * PARTITIONS
    found: list[PartitionSealed] = []
    for partition, _, event in step_events([f"task-{n:06d}" for n in range(groups)], 1, PARTITIONS, random.Random(3)):
        last = replace(event, last_of_epoch=True) if isinstance(event, BarrierReached) else event
        evolved = measure(states[partition], offsets[partition], last)
        states[partition], offsets[partition] = evolved.state, offsets[partition] + 1
        found += evolved.seals
    return found


def log(steps: int, groups: int, epoch: int) -> Iterator[bytes]:
    """As measure and select write it, step by step."""
    state, offset, seals = SelectState(), 0, templates(groups)
    for step in range(1, steps + 1):
        last = step % epoch == 0
        events: list[Any] = []
        for seal in seals:
            kept = seal.state if last else ()
            place: dict[str, Any] = {
                "step": step,
                "epoch": 1 + (step - 1) // epoch,
                "last_of_epoch": last,
                "state": kept,
            }
            events.append(replace(seal, barrier_offset=step * 10, **place))
        for event in events:
            selected = select(state, offset, event)
            state, offset = selected.state, offset + 1
            events += [selected.proposed] if selected.proposed else []
            yield encode(event)


async def measured(steps: int, groups: int, epoch: int) -> dict[str, float]:
    """Seconds from the call to the state, and of this process's CPU, by what the worker holds."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(Path(folder) / "broker.log") as broker:
        settings = StreamsSettings(broker.address, "recovery.", PARTITIONS, Path(folder))
        await create_topics(broker.address, settings.prefix, PARTITIONS)
        topic = Topic.SEALS.named(settings.prefix)
        async with log_producer(broker.address) as producer:
            events = (Outgoing(topic, 0, b"run", value) for value in log(steps, groups, epoch))
            offsets = await write(producer, events)
        end = offsets[-1] + 1
        found = {"steps": float(steps), "messages": float(end)}
        for name, since in (("measure", None), ("measure_and_select", end), ("everything_asked_for_again", 0)):
            began, busy = time.monotonic(), time.process_time()
            await read_seals(settings, range(PARTITIONS), since)
            found[f"{name}_seconds"] = round(time.monotonic() - began, 2)
            found[f"{name}_cpu_seconds"] = round(time.process_time() - busy, 2)
    return found


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=32, help="a step")
    parser.add_argument("--epoch", type=int, default=13, help="steps in one")
    chosen = parser.parse_args()
    sys.stdout.write(json.dumps(asyncio.run(measured(chosen.steps, chosen.groups, chosen.epoch)), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
