"""The learner's folds over what it reads, one topic each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from learner.history import History
from learner.samples import TrajectoryBuffer
from schemas.rollouts import TaskMeasured, TrajectoryRecorded
from schemas.topics import Topic
from streams.pool.evidence import SealedSteps
from streams.pool.fold import evolve, skip
from streams.pool.state import PoolState


class Asked(NamedTuple):
    """What a group was asked for as. A measurement of the group as anything else answers nothing: its result has the
    wrong K or total, and the barrier will not count it."""

    group: str
    task: str
    purpose: str
    category: str
    k: int
    turns_total: int


@dataclass(slots=True)
class Views:
    """The learner's folds. Each reads one topic. measured: a hint that a step may be complete."""

    history: History = field(default_factory=History)
    pool: PoolState = field(default_factory=PoolState)
    seals: SealedSteps = field(default_factory=SealedSteps)
    measured: dict[Asked, TaskMeasured] = field(default_factory=dict)
    trajectories: TrajectoryBuffer = field(default_factory=TrajectoryBuffer)

    def folds(self) -> dict[Topic, Callable[[int, int, Any], None]]:
        """What the log feeds from the start, topic by topic. Trajectories are followed once the step is known."""
        return {
            Topic.EPOCHS: self._on_epochs,
            Topic.POOL: self._on_pool,
            Topic.SEALS: self._on_seals,
            Topic.MEASUREMENTS: self._on_measured,
        }

    def on_trajectory(self, _: int, __: int, event: Any) -> None:
        """The fold over trajectories."""
        if isinstance(event, TrajectoryRecorded):
            self.trajectories.evolve(event)

    def forget_measured(self, before: int) -> None:
        """Lets go of the measurements of earlier steps."""
        self.measured = {asked: event for asked, event in self.measured.items() if event.step >= before}

    def _on_epochs(self, _: int, offset: int, event: Any) -> None:
        if event is not None:
            self.history.evolve(offset, event)

    def _on_pool(self, _: int, offset: int, event: Any) -> None:
        self.pool = skip(self.pool, offset) if event is None else evolve(self.pool, offset, event)

    def _on_seals(self, _: int, offset: int, event: Any) -> None:
        if event is not None:
            self.seals.evolve(offset, event)

    def _on_measured(self, _: int, __: int, event: Any) -> None:
        if isinstance(event, TaskMeasured):
            k = event.live + event.failed
            asked = Asked(event.group, event.task, event.purpose, event.category, k, event.turns_total)
            self.measured.setdefault(asked, event)
