"""One partition folded from its beginning, with waits on how far it is folded."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

from eventlog.connection import Broker
from eventlog.reader import LogTail, readable
from eventlog.standstill import Place

_POLL_SECONDS = 0.5


class PartitionFollower:
    """Folds events with `apply(offset, event)` in order; bytes that hold no event are passed over.

    An unknown fingerprint or a standstill ends the follower, and whoever uses it.
    """

    def __init__(self, broker: Broker, topic: str, apply: Callable[[int, Any], None], partition: int = 0) -> None:
        self._place: Place = (topic, partition)
        self._tail = LogTail(broker, {self._place: 0}, live=True)
        self._apply = apply
        self._next_offset = 0
        self._advanced = asyncio.Condition()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Self]:
        """Follows the partition for the time of the block; its failure ends the block. Raises LogError where the
        broker no longer has the beginning."""
        async with self._tail, asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._follow(), name=f"follow {self._place[0]}")
            try:
                yield self
            finally:
                task.cancel()

    async def reached(self, offset: int) -> None:
        """Waits until everything before `offset` is folded, however long the log takes to get there."""
        async with self._advanced:
            await self._advanced.wait_for(lambda: self._next_offset >= offset)

    async def changed(self) -> None:
        """Waits for the next events to be folded."""
        async with self._advanced:
            await self._advanced.wait()

    async def caught_up(self) -> None:
        """Waits until everything that the log holds at the time of the call is folded: a batch is folded whole."""
        await self.reached((await self._tail.last_batches())[self._place])

    async def _follow(self) -> None:
        while True:
            records = await self._tail.poll(_POLL_SECONDS, max_records=None)
            for record in records:
                if (event := readable(record)) is not None:
                    self._apply(record.offset, event)
            if records:
                async with self._advanced:
                    self._next_offset = records[-1].offset + 1
                    self._advanced.notify_all()
