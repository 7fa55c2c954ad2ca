"""Ends a worker that stands still, so that its supervisor starts it again; what it had not finished is done again.

A consumer may bring nothing for ever without an error, for example after a broker's restart, and a blocked event loop
sends no heartbeat. Neither shows by itself.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from producers.errors import StandstillError

logger = logging.getLogger(__name__)

STUCK_SECONDS = 60.0
BLOCKED_SECONDS = 30.0
TICK_SECONDS = 0.5
EXIT_BLOCKED = 70
_PROBE_MS = 3_000


class Standstill:
    """Told of every poll. Where none has brought anything for `seconds`, asks a consumer of its own whether the log has
    more. If it has, and nothing comes for `seconds` more, raises StandstillError: a record that was written a moment
    ago, after a quiet time, is none that does not arrive. A broker that does not answer proves nothing."""

    def __init__(self, probe: Callable[[], AIOKafkaConsumer], seconds: float = STUCK_SECONDS) -> None:
        self._probe, self._seconds = probe, seconds
        self._moved_at = time.monotonic()
        self._behind = False

    async def polled(self, consumer: AIOKafkaConsumer, *, moved: bool) -> None:
        """After a poll. moved: it brought something. Raises StandstillError, and OffsetOutOfRangeError."""
        now = time.monotonic()
        if not moved and now - self._moved_at <= self._seconds:
            return
        self._moved_at = now
        if moved:
            self._behind = False
            return
        at = await self._waiting({at: await consumer.position(at) for at in consumer.assignment()})
        if at is not None and self._behind:
            raise StandstillError(at.topic, at.partition, self._seconds)
        self._behind = at is not None

    async def _waiting(self, positions: Mapping[TopicPartition, int]) -> TopicPartition | None:
        """A partition that has a record at its position."""
        probe = self._probe()
        probe.assign(list(positions))
        try:
            await probe.start()
            for at, position in positions.items():
                probe.seek(at, position)
            found = await probe.getmany(timeout_ms=_PROBE_MS, max_records=1) if positions else {}
        except (KafkaError, TimeoutError) as error:
            logger.warning("whether the log has more cannot be asked: %s", error)
            return None
        finally:
            await probe.stop()
        return next(iter(found), None)


@contextmanager
def beating(end: Callable[[], None], seconds: float = BLOCKED_SECONDS, tick: float = TICK_SECONDS) -> Iterator[None]:
    """Calls `end` in a thread once the running event loop has not come round for `seconds`.

    The thread counts its own ticks, not the time: a process that was paused as a whole is not blocked.
    """
    missed, stopped, loop = [0], threading.Event(), asyncio.get_running_loop()

    def beat() -> None:
        missed[0] = 0
        if not stopped.is_set():
            loop.call_later(tick, beat)

    def count() -> None:
        while not stopped.wait(tick):
            missed[0] += 1
            if missed[0] * tick > seconds:
                end()
                return

    beat()
    threading.Thread(target=count, name="loop-watchdog", daemon=True).start()
    try:
        yield
    finally:
        stopped.set()


def end_blocked() -> None:
    """Ends the process at once, to be started again."""
    logger.critical("the event loop was blocked for more than %g s", BLOCKED_SECONDS)
    logging.shutdown()
    os._exit(EXIT_BLOCKED)
