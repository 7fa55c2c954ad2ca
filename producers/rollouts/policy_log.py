"""What the learner's log says to a rollout worker: published policy versions, and the rules of each epoch.

A fold over `rods.epochs`. Of two publications of a version the newer generation's counts, and within a generation the
first; events older than the newest generation seen are ignored.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from eventlog.connection import Broker
from eventlog.fence import superseded
from eventlog.follower import PartitionFollower
from schemas.epochs import EpochOpened, LearnerStarted, PolicyPublished
from schemas.rules import RolloutRules, Rules
from schemas.topics import Topic

T = TypeVar("T")


class PolicyIndex:
    """The fold. Events arrive in offset order."""

    def __init__(self) -> None:
        self._generation = 0
        self._published: dict[int, PolicyPublished] = {}
        self._rules: dict[int, tuple[int, RolloutRules]] = {}

    def apply(self, offset: int, event: Any) -> None:
        """Takes one event of the learner's log."""
        del offset
        if not isinstance(event, LearnerStarted | PolicyPublished | EpochOpened):
            return
        if superseded(event, self._generation):
            return
        self._generation = event.generation
        if isinstance(event, PolicyPublished):
            known = self._published.get(event.version)
            if known is None or known.generation < event.generation:
                self._published[event.version] = event
        elif isinstance(event, EpochOpened):
            self._open(event)

    def _open(self, event: EpochOpened) -> None:
        known, _ = self._rules.get(event.epoch, (-1, None))
        if known < event.generation:
            try:
                self._rules[event.epoch] = event.generation, Rules.parse(event.rules).rollout
            except ValidationError:
                return

    def published(self, version: int) -> PolicyPublished | None:
        """The publication of a version that counts."""
        return self._published.get(version)

    def rules(self, epoch: int) -> RolloutRules | None:
        """The rollout rules of an epoch: its own, or the last before it, or the first of all; None without any."""
        if not self._rules:
            return None
        before = [number for number in self._rules if number <= epoch]
        return self._rules[max(before) if before else min(self._rules)][1]


class PolicyLog(PartitionFollower):
    """The index kept up to date with the broker's log."""

    def __init__(self, broker: Broker, prefix: str) -> None:
        self.index = PolicyIndex()
        super().__init__(broker, Topic.EPOCHS.named(prefix), self.index.apply)

    async def published(self, version: int, seconds: float) -> PolicyPublished | None:
        """The publication of a version, waiting up to `seconds` for it."""
        return await self._within(seconds, lambda: self.index.published(version))

    async def rules(self, epoch: int, seconds: float) -> RolloutRules:
        """The rollout rules of an epoch, the defaults where none is opened within `seconds`. What the learner wrote
        before its requests is read first."""
        await self.caught_up()
        return await self._within(seconds, lambda: self.index.rules(epoch)) or RolloutRules()

    async def _within(self, seconds: float, find: Callable[[], T | None]) -> T | None:
        try:
            async with asyncio.timeout(seconds):
                while (found := find()) is None:
                    await self.changed()
        except TimeoutError:
            return None
        return found
