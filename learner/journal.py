"""What the learner writes and what it waits for: each write returns once the learner's own views have folded it.

Where a newer learner owns the run the folds ignore the write, and the guard raises instead.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from learner.log import LearnerLog, Write
from learner.views import Views
from schemas.topics import Topic, partition_of


@dataclass(slots=True)
class Journal:
    """The log as one generation writes it. idle: seconds waited, by cause, since they were last taken."""

    log: LearnerLog
    views: Views
    generation: int = 0
    idle: dict[str, float] = field(default_factory=dict)

    def partition(self, task: str) -> int:
        """Where a task's events go."""
        return partition_of(task, self.log.partitions)

    async def to_epochs(self, event: Any) -> None:
        """Writes to `rods.epochs`."""
        offset = (await self.log.write([Write(Topic.EPOCHS, 0, self.log.run_id, event)]))[0]
        await self.log.wait_until(lambda: self.views.history.next_offset > offset)
        self.log.guard()

    async def to_pool(self, events: Iterable[Any]) -> None:
        """Writes to `rods.pool`, in order."""
        offsets = await self.log.write([Write(Topic.POOL, 0, self.log.run_id, event) for event in events])
        if offsets:
            await self.log.wait_until(lambda: self.views.pool.next_offset > offsets[-1])
            self.log.guard()

    async def wait(self, cause: str, condition: Callable[[], bool], seconds: float) -> bool:
        """Waits for the views; False where the time ran out."""
        started = self.log.clock()
        reached = await self.log.wait_until(condition, seconds)
        self.idle[cause] = self.idle.get(cause, 0.0) + (self.log.clock() - started) / 1e6
        return reached

    def take_idle(self) -> dict[str, float]:
        """The waits so far; starts anew."""
        taken, self.idle = self.idle, {}
        return taken
