"""Seals on their way to the log, while the fold goes on.

In the order in which they fall due, those of one round together: 1 everything posted before is acknowledged by the
broker, 2 the seals are, 3 the offsets they cover are acknowledged. A worker that dies in between folds the same events
again and writes the same bytes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.service.outbox import Outbox
from streams.service.session import MeasurePosition

MAX_DUE = 8192
"""Groups in seals that are due and that the broker does not have yet; a seal counts as one more. More make the stream
wait."""

Start = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine beside the stream; what it raises ends the process."""

Acknowledge = Callable[[Iterable[Any]], None]
"""Lets the group's offset move past these events."""

Observe = Callable[[Sequence[PartitionSealed], int], None]
"""Told the chunks of each seal that the broker has, and how many events it covers."""


class Due(NamedTuple):
    """The chunks of a seal.

    end: they cover the offsets below it.
    live: whether the position is still the worker's.
    """

    position: MeasurePosition
    seals: tuple[PartitionSealed, ...]
    end: int
    live: Callable[[], bool]

    @property
    def weight(self) -> int:
        return 1 + sum(len(seal.groups) for seal in self.seals)


class Sealing:
    """Writes what is due by one coroutine at a time, which `start` is given and which ends when nothing is due."""

    def __init__(
        self,
        outbox: Outbox,
        run_key: str,
        start: Start,
        acknowledge: Acknowledge,
        sealed: Observe = lambda *_: None,
    ) -> None:
        self._outbox, self._run_key, self._start = outbox, run_key, start
        self.acknowledge, self._sealed = acknowledge, sealed
        self._due: list[Due] = []
        self._unwritten = 0
        self._writing = False
        self._written = asyncio.Event()

    @property
    def full(self) -> bool:
        return self._unwritten >= MAX_DUE

    async def room(self) -> None:
        """Returns once fewer than `MAX_DUE` groups wait for the broker."""
        while self.full:
            self._written.clear()
            await self._written.wait()

    def add(self, due: Due) -> None:
        """Takes a seal whose views and refusals are posted."""
        self._due.append(due)
        self._unwritten += due.weight
        if not self._writing:
            self._writing = True
            self._start(self._write())

    async def _write(self) -> None:
        try:
            while self._due:
                due, self._due = self._due, []
                await self._round(due)
                self._unwritten -= sum(one.weight for one in due)
                self._written.set()
        finally:
            self._writing = False

    async def _round(self, due: Sequence[Due]) -> None:
        await self._outbox.settled()
        written = [one for one in due if await self._posted(one)]
        await self._outbox.settled()
        for one in written:
            self._sealed(one.seals, one.end - one.position.sealed)
            one.position.sealed = one.end
            if one.live():
                self.acknowledge(one.position.covered(one.end))

    async def _posted(self, due: Due) -> bool:
        """Whether the seal is on its way: a worker that lost the partition writes none."""
        if not due.live():
            return False
        for seal in due.seals:
            await self._outbox.post(Topic.SEALS, 0, self._run_key, seal)
        return True
