"""The sink: follows every topic of a run into its table, and serves the dashboard page from the same process.

Where it goes on is the tables': one past the largest offset of each partition. A killed sink loses nothing, and what it
adds again is the same rows. SIGTERM makes it take everything up to the end offsets of that moment, and end. It is an
observer: a partition with an event of a newer schema is left at its offset, and the others go on.
"""

import asyncio
import logging
import signal
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass

from eventlog.connection import Broker
from eventlog.reader import LogRecord, LogTail
from eventlog.standstill import Place
from schemas.errors import UnknownFingerprintError
from schemas.topics import Topic
from streams.warehouse.dashboard import Dashboard
from streams.warehouse.store import Warehouse
from streams.warehouse.tables import Row, row_of, table_of

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WarehouseSettings:
    """partitions: N.
    dsn: see `store`.
    dashboard_port: on 127.0.0.1; None serves no page.
    """

    broker: Broker
    prefix: str
    partitions: int
    dsn: str
    dashboard_port: int | None = None
    flush_seconds: float = 1.0
    flush_rows: int = 5000
    drain_seconds: float = 30.0


def run_warehouse(settings: WarehouseSettings) -> None:
    """Sinks until SIGTERM or SIGINT. Blocks. Raises WarehouseError, LogError, TimeoutError (drain took too long)."""
    asyncio.run(_until_signalled(settings))


async def sink_until(settings: WarehouseSettings, stopping: asyncio.Event) -> None:
    """Sinks until `stopping` is set, then up to the end offsets of that moment."""
    async with AsyncExitStack() as stack:
        warehouse = await stack.enter_async_context(Warehouse(settings.dsn))
        if settings.dashboard_port is not None:
            await stack.enter_async_context(Dashboard(warehouse, settings.prefix, settings.dashboard_port))
        starts = await _starts(warehouse, settings)
        tail = await stack.enter_async_context(LogTail(settings.broker, starts))
        sink = _Sink(warehouse, settings)
        while not stopping.is_set():
            await sink.take(await tail.poll(0.2))
        await _drain(tail, sink, settings.drain_seconds)


async def _starts(warehouse: Warehouse, settings: WarehouseSettings) -> dict[Place, int | None]:
    found = await warehouse.next_offsets(settings.prefix)
    places = [
        (topic.named(settings.prefix), number)
        for topic in Topic
        for number in range(settings.partitions if topic.by_task else 1)
    ]
    return {place: found.get(place) for place in places}


async def _drain(tail: LogTail, sink: "_Sink", seconds: float) -> None:
    async with asyncio.timeout(seconds):
        async for records in tail.until(await tail.ends()):
            await sink.take(records)
        await sink.flush()


class _Sink:
    """Rows on their way to the tables. One insert a table: the rows of a partition arrive in order and without gaps."""

    def __init__(self, warehouse: Warehouse, settings: WarehouseSettings) -> None:
        self._warehouse = warehouse
        self._settings = settings
        self._topics = {topic.named(settings.prefix): topic for topic in Topic}
        self._rows: dict[Topic, list[Row]] = defaultdict(list)
        self._stopped: set[Place] = set()
        self._flushed_at = asyncio.get_running_loop().time()

    async def take(self, records: list[LogRecord]) -> None:
        """Adds records, and writes when the oldest waits long enough or there are many."""
        for record in records:
            self._add(record)
        waiting = sum(map(len, self._rows.values()))
        age = asyncio.get_running_loop().time() - self._flushed_at
        if waiting >= self._settings.flush_rows or age >= self._settings.flush_seconds:
            await self.flush()

    async def flush(self) -> None:
        """Makes what was added visible to queries."""
        for topic, rows in self._rows.items():
            if rows:
                await self._warehouse.insert(table_of(topic), rows)
        self._rows.clear()
        self._flushed_at = asyncio.get_running_loop().time()

    def _add(self, record: LogRecord) -> None:
        place, topic = (record.topic, record.partition), self._topics[record.topic]
        if place in self._stopped:
            return
        try:
            self._rows[topic].append(row_of(topic, record))
        except UnknownFingerprintError as error:
            self._stopped.add(place)
            _LOG.error("%s/%d stops at offset %d: %s", record.topic, record.partition, record.offset, error)


async def _until_signalled(settings: WarehouseSettings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await sink_until(settings, stopping)
