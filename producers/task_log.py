"""What the pool's log says about tasks, as of an offset: definitions, members, and which seeds are settled.

A fold over `rods.pool` that looks tasks up and decides nothing. A learner's event counts only if its generation is not
older than the newest one seen; the first fact of a natural key wins.
"""

import asyncio
from bisect import bisect_left
from typing import Any

from eventlog.connection import Broker
from eventlog.fence import superseded
from eventlog.follower import PartitionFollower
from producers.errors import PoolBehindError, TaskUnknownError
from schemas.epochs import LearnerStarted
from schemas.identity import content_digest
from schemas.pool import PoolMaterialized, SeedSettled, TaskRegistered, VariantVerified
from schemas.task import TaskDefinition
from schemas.topics import Topic


class TaskIndex:
    """The fold. Events arrive in offset order."""

    def __init__(self) -> None:
        self._generation = 0
        self._definitions: dict[str, tuple[int, TaskDefinition]] = {}
        self._materialized: list[tuple[int, tuple[str, ...]]] = []
        self._epochs: set[int] = set()
        self._settled: set[str] = set()
        self._contents: dict[str, str] = {}

    def apply(self, offset: int, event: Any) -> None:
        """Takes one event of the pool's log."""
        if superseded(event, self._generation):
            return
        match event:
            case LearnerStarted():
                self._generation = event.generation
            case TaskRegistered() | VariantVerified():
                self._definitions.setdefault(event.definition.task, (offset, event.definition))
            case PoolMaterialized() if event.epoch not in self._epochs:
                self._epochs.add(event.epoch)
                self._materialized.append((offset, event.members))
            case SeedSettled():
                self._settled.add(event.seed)
            case _:
                pass

    def definition(self, task: str, pool_offset: int) -> TaskDefinition:
        """The task as defined before `pool_offset`. Raises TaskUnknownError."""
        offset, definition = self._definitions.get(task, (pool_offset, None))
        if definition is None or offset >= pool_offset:
            raise TaskUnknownError(task, pool_offset)
        return definition

    def members(self, pool_offset: int) -> tuple[TaskDefinition, ...]:
        """The members of the last pool materialised before `pool_offset`, in its order; none before the first."""
        before = bisect_left(self._materialized, pool_offset, key=lambda entry: entry[0])
        if before == 0:
            return ()
        return tuple(self.definition(task, pool_offset) for task in self._materialized[before - 1][1])

    def contents(self, pool_offset: int) -> frozenset[str]:
        """The content digests of `members`: what a new variant must not repeat."""
        return frozenset(self._content(definition) for definition in self.members(pool_offset))

    def _content(self, definition: TaskDefinition) -> str:
        if definition.task not in self._contents:
            self._contents[definition.task] = content_digest(definition)
        return self._contents[definition.task]

    def settled(self, seed: str) -> bool:
        """Whether the log, as far as it is folded, settles the seed."""
        return seed in self._settled


class TaskLog(PartitionFollower):
    """The index kept up to date with the broker's log."""

    def __init__(self, broker: Broker, prefix: str, wait_seconds: float = 60.0) -> None:
        self._wait_seconds = wait_seconds
        self._index = TaskIndex()
        super().__init__(broker, Topic.POOL.named(prefix), self._index.apply)

    async def index(self, pool_offset: int) -> TaskIndex:
        """The index once the log is folded to the offset. Raises PoolBehindError after `wait_seconds`."""
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self.reached(pool_offset)
        except TimeoutError:
            raise PoolBehindError(pool_offset) from None
        return self._index

    async def settled(self, seed: str) -> bool:
        """Whether the log, as it is at the time of the call, settles the seed."""
        await self.caught_up()
        return self._index.settled(seed)
