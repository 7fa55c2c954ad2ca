"""One variant of a worker as a process: reads the preloaded messages and says what they cost.

``python -m benchmarks.streams_parts.worker VARIANT BROKER PREFIX PARTITIONS FOLDER NAME ENDS``, where ENDS is a
comma-separated end offset per partition. It joins, writes ``NAME.joined``, waits for the file ``go``, works until each
of its partitions has been read to its end, writes ``NAME.json`` and ends.
"""

import asyncio
import logging
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import faust

import streams.service.app
from benchmarks.streams_parts.load import step_events
from benchmarks.streams_parts.meter import Meter
from benchmarks.streams_parts.task_fold import folded, plain
from eventlog.client import MAX_REQUEST_BYTES
from schemas.codec import decode, encode
from schemas.rollouts import RolloutFinished
from schemas.topics import Topic
from streams.measure.agent import MeasureAgent
from streams.service.app import build_app
from streams.service.settings import StreamsSettings
from streams.service.worker import spare_collections


def real(settings: StreamsSettings, meter: Meter) -> faust.App:
    """The streams service itself. A message is dealt with when its offset is acknowledged, behind its seal."""
    take, acknowledge = MeasureAgent.take, streams.service.app._acknowledge

    async def metered(self: MeasureAgent, event: Any) -> None:
        await _allowed(meter, app)
        await take(self, event)

    def acknowledged(app: faust.App, events: Iterable[Any]) -> None:
        covered = list(events)
        acknowledge(app, covered)
        for event in covered:
            meter.tick(event.message.partition, event.message.offset)

    MeasureAgent.take = metered  # type: ignore[method-assign]
    streams.service.app._acknowledge = acknowledged
    spare_collections()
    app = build_app(settings)
    return app


def empty(settings: StreamsSettings, meter: Meter) -> faust.App:
    """An agent that decodes, and leaves the rest to the framework."""
    app, topic = _plain_app(settings)

    @app.agent(topic, name="empty", concurrency=1)  # type: ignore[untyped-decorator]
    async def empty_agent(stream: Any) -> None:
        async for event in stream.events():
            await _allowed(meter, app)
            decode(event.value)
            meter.tick(event.message.partition, event.message.offset)

    return app


def bare(settings: StreamsSettings, meter: Meter) -> faust.App:
    """The service with an agent that only decodes: what its way of delivery costs."""

    async def metered(self: MeasureAgent, event: Any) -> None:
        del self
        await _allowed(meter, app)
        decode(event.message.value)
        meter.tick(event.message.partition, event.message.offset)

    MeasureAgent.take = metered  # type: ignore[method-assign]
    app = build_app(settings)
    return app


def table(settings: StreamsSettings, meter: Meter) -> faust.App:
    """The fold of a task with one write to a Faust table per message; no view, no seal."""
    app, topic = _plain_app(settings)
    tasks = app.Table("tasks", partitions=settings.partitions, key_type=str, value_type=list)

    @app.agent(topic, name="table", concurrency=1)  # type: ignore[untyped-decorator]
    async def table_agent(stream: Any) -> None:
        async for event in stream.events():
            await _allowed(meter, app)
            finished = decode(event.value)
            if isinstance(finished, RolloutFinished):
                tasks[finished.task] = plain(folded(tasks.get(finished.task), finished))
            meter.tick(event.message.partition, event.message.offset)

    return app


def _plain_app(settings: StreamsSettings) -> tuple[faust.App, Any]:
    """Faust as it comes, with the settings of the service; acknowledgement is left to it."""
    app = faust.App(
        settings.app_id,
        broker=f"kafka://{settings.broker}",
        datadir=str(settings.data_dir),
        topic_partitions=settings.partitions,
        topic_disable_leader=True,
        table_standby_replicas=0,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=MAX_REQUEST_BYTES,
        producer_acks=-1,
        broker_session_timeout=settings.session_seconds,
        broker_heartbeat_interval=1.0,
        broker_rebalance_timeout=settings.rebalance_seconds,
        broker_commit_interval=1.0,
        stream_wait_empty=False,
        web_enabled=False,
        worker_redirect_stdouts=False,
    )
    topic = app.topic(
        Topic.ROLLOUTS.named(settings.prefix),
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        partitions=settings.partitions,
    )
    return app, topic


async def _allowed(meter: Meter, app: faust.App) -> None:
    """Holds the first message until the benchmark lets all workers go; for any other it returns at once."""
    if meter.started:
        return
    generation = app.consumer_generation_id
    meter.joined({tp.partition for tp in app.consumer.assignment() if tp.topic.endswith(Topic.ROLLOUTS)})
    while not meter.may_go:
        await asyncio.sleep(0.01)
        if app.consumer_generation_id != generation:
            return
    meter.go()


VARIANTS: dict[str, Callable[[StreamsSettings, Meter], faust.App]] = {
    "real": real,
    "empty": empty,
    "bare": bare,
    "table": table,
}


def warm_up() -> None:
    """Reads the schemas, which costs as much as some thousand groups, before time counts."""
    for _, _, event in step_events(["task"], 1, 1, random.Random(1)):
        decode(encode(event))


def main() -> None:
    """Runs one variant."""
    variant, broker, prefix, partitions, folder, name, ends = sys.argv[1:]
    logging.basicConfig(level="WARNING")
    settings = StreamsSettings(broker, prefix, int(partitions), Path(folder) / f"{name}-data")
    meter = Meter(Path(folder), name, [int(end) for end in ends.split(",")])
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    app = VARIANTS[variant](settings, meter)
    warm_up()
    worker = faust.Worker(
        app, loop=loop, quiet=True, loglevel="WARNING", override_logging=False, redirect_stdouts=False
    )
    worker.spinner = None
    worker.execute_from_commandline()


if __name__ == "__main__":
    main()
