"""The Faust app: `measure` over `rods.rollouts`, `select` over `rods.seals`.

No tables: a paused worker that wakes overwrites its successor's changelog. No automatic acknowledgement, concurrency 1,
topics made before the start. State is rebuilt from the seals at each assignment, while the gate is closed; what the
group was told to begin behind is folded from the log. Watchdogs end a process that stands still.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from time import monotonic
from typing import Any

import faust
from faust.types import TP

from eventlog.client import MAX_REQUEST_BYTES
from eventlog.connection import connection_to
from eventlog.reader import end_offsets
from eventlog.standstill import End, Place, PositionWatchdog, loop_watched
from schemas.topics import Topic
from streams.errors import StreamError
from streams.measure.agent import MeasureAgent
from streams.measure.sealing import Sealing
from streams.seals.reader import read_seals
from streams.select.agent import SelectAgent
from streams.service.catch_up import Standing, missing, records, standings
from streams.service.credentials import credentials
from streams.service.faust_internals import StreamsApp, buffered, use_prompt_transport
from streams.service.health import LOOPBACK, Health
from streams.service.metrics import Standing as Progress
from streams.service.metrics import StreamsMetrics
from streams.service.outbox import Outbox
from streams.service.session import Gate, MeasurePosition, SelectPosition, Session
from streams.service.settings import StreamsSettings

EXIT_RESTART = 70
MAX_BATCH_BYTES = 512 * 1024
"""A partition's batch at a time is on its way: with the client's 16 KiB that was one seal a round trip."""
_log = logging.getLogger(__name__)
Take = Callable[[Any, Any], Awaitable[None]]


def build_app(settings: StreamsSettings) -> faust.App:
    """The app with both agents. One process runs it; more processes share the partitions."""
    connection = connection_to(settings.broker)
    app = StreamsApp(
        settings.app_id,
        broker=";".join(f"kafka://{address}" for address in connection.addresses),
        broker_credentials=credentials(connection),
        datadir=str(settings.data_dir),
        topic_partitions=settings.partitions,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=MAX_REQUEST_BYTES,
        producer_max_request_size=MAX_REQUEST_BYTES,
        producer_max_batch_size=MAX_BATCH_BYTES,
        producer_acks=-1,
        broker_session_timeout=settings.session_seconds,
        broker_heartbeat_interval=min(1.0, settings.session_seconds / 4),
        broker_rebalance_timeout=settings.rebalance_seconds,
        broker_commit_interval=1.0,
        stream_buffer_maxsize=settings.buffer,
        stream_wait_empty=False,
        web_enabled=False,
        worker_redirect_stdouts=False,
    )
    app.crashed_with = _exit
    use_prompt_transport(app)
    _wire(app, settings)
    return app


def _wire(app: faust.App, settings: StreamsSettings) -> None:
    gate, outbox = Gate(app), Outbox(app, settings.prefix)
    select_outbox = Outbox(app, settings.prefix)
    metrics = StreamsMetrics(partial(_standings, app, gate, settings))
    start, acknowledge = partial(_start, app, set()), partial(_acknowledge, app)
    sealing = Sealing(outbox, settings.prefix, start, acknowledge, metrics.sealed)
    measure = MeasureAgent(gate, outbox, sealing, partial(records, settings), metrics.noticed)
    select = SelectAgent(gate, select_outbox, settings.prefix, metrics.noticed)
    assigned = _Assigned(app, settings, gate, measure, select, metrics)
    app.on_partitions_revoked.connect(assigned.revoke, weak=False)
    app.on_partitions_assigned.connect(assigned.assign, weak=False)
    streams: tuple[tuple[str, Topic, Take], ...] = (
        ("measure", Topic.ROLLOUTS, lambda _, event: measure.take(event)),
        ("select", Topic.SEALS, select.take),
    )
    for name, topic, take in streams:
        app.agent(_raw(app, settings, topic), name=name, concurrency=1)(
            _stream_of(app, take, partial(metrics.took, name))
        )
    if settings.metrics_port:
        health = Health(metrics.registry, lambda: gate.current is not None)
        app.task(_serving(app, settings, health))
    end = partial(_end, app)
    ends = partial(end_offsets, settings.broker)
    app.task(partial(_watch_loop, settings.blocked_seconds, end))
    app.task(PositionWatchdog(settings.stuck_seconds, partial(_positions, gate, settings), ends, end).watch)


async def _watch_loop(seconds: float, end: End) -> None:
    with loop_watched(end, seconds):
        await asyncio.Event().wait()


def _start(app: faust.App, running: set[asyncio.Task[None]], coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs it beside the streams. Like theirs, its failure ends the process."""

    def done(task: asyncio.Task[None]) -> None:
        running.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            _end(app, error)

    task = asyncio.get_running_loop().create_task(coroutine)
    running.add(task)
    task.add_done_callback(done)


def _acknowledge(app: faust.App, events: Iterable[Any]) -> None:
    """What a stream's own acknowledgement comes to, where a message has one reader."""
    acknowledge = app.consumer.ack
    for event in events:
        acknowledge(event.message)


def _serving(app: faust.App, settings: StreamsSettings, health: Health) -> Callable[[], Awaitable[None]]:
    async def serve() -> None:
        try:
            port = await health.start(settings.metrics_port, settings.metrics_ports)
        except StreamError as error:
            _end(app, error)
            return
        _log.info("metrics are at http://%s:%d/metrics", LOOPBACK, port)

    return serve


def _standings(app: faust.App, gate: Gate, settings: StreamsSettings) -> dict[Place, Progress]:
    ends = app.monitor.tp_end_offsets
    return {place: Progress(at, ends.get(TP(*place))) for place, (at, _) in _places(gate, settings).items()}


def _positions(gate: Gate, settings: StreamsSettings) -> dict[Place, int] | None:
    """The next offset of every place that has not stopped for good; None while a rebalance is on."""
    if gate.current is None:
        return None
    return {place: at for place, (at, stopped) in _places(gate, settings).items() if not stopped}


def _places(gate: Gate, settings: StreamsSettings) -> dict[Place, tuple[int, bool]]:
    """The next offset of every place, and whether it has stopped for good; empty while a rebalance is on."""
    session = gate.current
    if session is None:
        return {}
    rollouts, seals = (topic.named(settings.prefix) for topic in (Topic.ROLLOUTS, Topic.SEALS))
    found = {(rollouts, p): (at.state.next_offset, at.stopped) for p, at in session.measure.items()}
    if session.select is not None:
        found[seals, 0] = (session.select.state.next_offset, session.select.stopped)
    return found


def _raw(app: faust.App, settings: StreamsSettings, topic: Topic) -> Any:
    return app.topic(
        topic.named(settings.prefix),
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        partitions=settings.partitions if topic.by_task else 1,
    )


def _stream_of(
    app: faust.App, take: Take, took: Callable[[int], None] = lambda _: None
) -> Callable[[Any], Awaitable[None]]:
    async def agent(stream: Any) -> None:
        stream.enable_acks = False
        async for event in stream.events():
            try:
                await take(stream, event)
                taken = 1
                for more in buffered(app, stream):
                    await take(stream, more)
                    taken += 1
                took(taken)
            except Exception as error:  # noqa: BLE001 - whatever it is, the process must not go on with half a state
                _end(app, error)

    return agent


class _Assigned:
    """Rebuilds the session at each assignment."""

    def __init__(
        self,
        app: faust.App,
        settings: StreamsSettings,
        gate: Gate,
        measure: MeasureAgent,
        select: SelectAgent,
        metrics: StreamsMetrics,
    ) -> None:
        self._app = app
        self._settings = settings
        self._gate = gate
        self._measure = measure
        self._select = select
        self._metrics = metrics

    async def revoke(self, _sender: Any, *_: Any, **__: Any) -> None:
        self._gate.close()
        self._metrics.revoked()

    async def assign(self, _sender: Any, assigned: Any = (), **_: Any) -> None:
        self._gate.close()
        generation, began = self._app.consumer_generation_id, monotonic()
        try:
            session = await self._session({(tp.topic, tp.partition) for tp in assigned}, generation)
        except Exception as error:  # noqa: BLE001 - as above
            if generation == self._app.consumer_generation_id:
                _end(self._app, error)
            return
        if generation == self._app.consumer_generation_id:
            self._gate.open(session)
            self._metrics.recovered(monotonic() - began, len(session.measure))

    async def _session(self, assigned: set[Place], generation: int) -> Session:
        rollouts, seals = (topic.named(self._settings.prefix) for topic in (Topic.ROLLOUTS, Topic.SEALS))
        places = {place for place in assigned if place[0] in (rollouts, seals)}
        since = None
        if (seals, 0) in places:
            since = (await standings(self._settings, [(seals, 0)]))[seals, 0].committed
        log = await read_seals(self._settings, [number for topic, number in places if topic == rollouts], since)
        standing = await standings(self._settings, places)
        measure = {p: MeasurePosition(state, sealed=state.next_offset) for p, state in log.states.items()}
        for number, position in measure.items():
            await self._catch_up(position, number, generation, standing[rollouts, number])
        select = None
        if (seals, 0) in places:
            select = SelectPosition.after(log.select, log.seeds, standing[seals, 0].committed)
            await self._select.resume(select)
        return Session(generation, measure, select)

    async def _catch_up(self, position: MeasurePosition, number: int, generation: int, standing: Standing) -> None:
        topic = Topic.ROLLOUTS.named(self._settings.prefix)
        if offsets := missing(topic, number, position.state.next_offset, standing):
            live = lambda: self._app.consumer_generation_id == generation  # noqa: E731
            await self._measure.catch_up(position, number, offsets.stop, live)


def _end(app: faust.App, error: Exception) -> None:
    """Ends the process at once, to be restarted: nothing unacknowledged is lost, and no half state lives on.

    Does nothing while the process stops anyway, when a closing producer may well refuse.
    """
    if not app.should_stop:
        _exit(error)


def _exit(error: BaseException) -> None:
    _log.critical("the streams worker ends: %s", str(error) or type(error).__name__, exc_info=error)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(EXIT_RESTART)
