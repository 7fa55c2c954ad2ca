"""Ends a process that stands still, so that its supervisor starts it again; a restart loses nothing.

- A blocked event loop sends no heartbeat and acknowledges nothing. A thread counts its own ticks between two beats of
  the loop, not the time: a process that was paused as a whole has beaten as often as it has ticked, and goes on.
- A consumer may stand still without an error, for example after a broker's restart. Its position is held against the
  end offset that a client of its own sees.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from eventlog.reader import Place
from streams.errors import BlockedLoopError, StuckConsumerError

TICK_SECONDS = 0.5
REBALANCE_FACTOR = 20
End = Callable[[Exception], None]


@dataclass(slots=True)
class Beats:
    """The ticks since the loop's last beat. seconds: how long without one is too long. tick: seconds between two."""

    seconds: float
    tick: float
    missed: int = 0

    def beat(self) -> None:
        self.missed = 0

    def blocked(self) -> bool:
        """Counts one more tick; whether there have been too many."""
        self.missed += 1
        return self.missed * self.tick > self.seconds


class LoopWatchdog:
    """`watch` beats in the loop; a daemon thread calls `end` once so many seconds of ticks bring no beat."""

    def __init__(self, seconds: float, end: End, tick: float = TICK_SECONDS) -> None:
        self._beats, self._end = Beats(seconds, tick), end
        self._stopped = threading.Event()

    async def watch(self) -> None:
        """Until cancelled."""
        threading.Thread(target=self._count, name="loop-watchdog", daemon=True).start()
        try:
            while True:
                self._beats.beat()
                await asyncio.sleep(self._beats.tick)
        finally:
            self._stopped.set()

    def _count(self) -> None:
        while not self._stopped.wait(self._beats.tick):
            if self._beats.blocked():
                self._end(BlockedLoopError(self._beats.seconds))
                return


@dataclass(slots=True)
class Progress:
    """The places that have more to read: where each stood and since when. Pure: times come from outside."""

    seconds: float
    since: dict[Place, tuple[int, float]] = field(default_factory=dict)

    def stuck(self, now: float, positions: Mapping[Place, int], ends: Mapping[Place, int]) -> Place | None:
        """A place that has had more to read for `seconds` and has not moved. A place that is new starts anew."""
        behind = {place: at for place, at in positions.items() if at < ends.get(place, 0)}
        before = self.since
        self.since = {place: (at, now) for place, at in behind.items()}
        self.since |= {place: known for place, known in before.items() if behind.get(place) == known[0]}
        return next((place for place, (_, began) in self.since.items() if now - began > self.seconds), None)


class PositionWatchdog:
    """positions: the next offset of each place that the worker holds, None while a rebalance is on.

    A rebalance is a standstill too once it takes `REBALANCE_FACTOR` times `seconds`: it includes reading the seals.
    """

    def __init__(
        self,
        seconds: float,
        positions: Callable[[], Mapping[Place, int] | None],
        ends: Callable[[Mapping[Place, int]], Awaitable[Mapping[Place, int]]],
        end: End,
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
                self._end(StuckConsumerError("the group's rebalance", REBALANCE_FACTOR * self._seconds))
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
            self._end(StuckConsumerError(f"{place[0]}/{place[1]}", self._seconds))
