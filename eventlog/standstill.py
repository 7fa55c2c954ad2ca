"""Ends a process that stands still, so that its supervisor starts it again; a restart loses nothing.

A consumer may bring nothing for ever without an error, for example after a broker's restart: its positions are compared
with the ends that another client sees. A blocked event loop sends no heartbeat: a thread counts the beats it misses.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from eventlog.errors import BlockedLoopError, StandstillError

STUCK_SECONDS = 60.0
BLOCKED_SECONDS = 30.0
TICK_SECONDS = 0.5
REBALANCE_FACTOR = 20

Place = tuple[str, int]
"""A topic's full name and a partition number."""
End = Callable[[Exception], None]
Ends = Callable[[Mapping[Place, int]], Awaitable[Mapping[Place, int]]]
"""From the next offset of each place to the log's end of each; a place without an answer is left out."""


@dataclass(slots=True)
class Progress:
    """The places that have more to read: where each is and since when. Pure: times (seconds) come from outside."""

    seconds: float
    since: dict[Place, tuple[int, float]] = field(default_factory=dict)

    def stuck(self, now: float, positions: Mapping[Place, int], ends: Mapping[Place, int]) -> Place | None:
        """A place that has had more to read for `seconds` and has not moved. A place that is new starts anew."""
        behind = {place: at for place, at in positions.items() if at < ends.get(place, 0)}
        before = self.since
        self.since = {place: (at, now) for place, at in behind.items()}
        self.since |= {place: known for place, known in before.items() if behind.get(place) == known[0]}
        return next((place for place, (_, began) in self.since.items() if now - began > self.seconds), None)


class Standstill:
    """For a client that polls: asks where the log ends once no poll has brought anything for `seconds`, and again
    after as long. A record that was written a moment ago, after a quiet time, has not failed to arrive."""

    def __init__(self, ends: Ends, seconds: float = STUCK_SECONDS) -> None:
        self._ends, self._seconds = ends, seconds
        self._progress, self._moved_at = Progress(seconds), time.monotonic()

    async def polled(self, positions: Callable[[], Awaitable[Mapping[Place, int]]], *, moved: bool) -> None:
        """After a poll. moved: it brought something. Raises StandstillError, and what `ends` raises."""
        now = time.monotonic()
        if moved:
            self._progress, self._moved_at = Progress(self._seconds), now
        elif now - self._moved_at > self._seconds:
            self._moved_at = now
            held = await positions()
            if (place := self._progress.stuck(now, held, await self._ends(held))) is not None:
                raise StandstillError(f"{place[0]}/{place[1]}", self._seconds)


class PositionWatchdog:
    """For a client that a framework polls. positions: the next offset of each place; None while a rebalance is on.

    A rebalance is a standstill too once it takes `REBALANCE_FACTOR` times `seconds`: it includes reading the seals.
    """

    def __init__(
        self, seconds: float, positions: Callable[[], Mapping[Place, int] | None], ends: Ends, end: End
    ) -> None:
        self._seconds, self._positions, self._ends, self._end = seconds, positions, ends, end
        self._progress = Progress(seconds)

    async def watch(self) -> None:
        """Until cancelled. A broker that does not answer proves nothing: once it answers, all places start anew."""
        clock = asyncio.get_running_loop().time
        closed_at: float | None = None
        while True:
            await asyncio.sleep(self._seconds / 4)
            positions = self._positions()
            closed_at = (closed_at or clock()) if positions is None else None
            if closed_at is not None and clock() - closed_at > REBALANCE_FACTOR * self._seconds:
                self._end(StandstillError("the group's rebalance", REBALANCE_FACTOR * self._seconds))
            if positions:
                await self._compare(positions, clock)

    async def _compare(self, positions: Mapping[Place, int], clock: Callable[[], float]) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                ends = await self._ends(positions)
        except Exception:  # noqa: BLE001 - an observer stops nothing for want of an answer
            self._progress = Progress(self._seconds)
            return
        if (place := self._progress.stuck(clock(), positions, ends)) is not None:
            self._end(StandstillError(f"{place[0]}/{place[1]}", self._seconds))


@contextmanager
def loop_watched(end: End, seconds: float = BLOCKED_SECONDS, tick: float = TICK_SECONDS) -> Iterator[None]:
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
                end(BlockedLoopError(seconds))
                return

    beat()
    threading.Thread(target=count, name="loop-watchdog", daemon=True).start()
    try:
        yield
    finally:
        stopped.set()
