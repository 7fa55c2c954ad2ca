"""The learner's folds over what it reads, one topic each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from learner.history import History
from learner.samples import TrajectoryBuffer
from schemas.rollouts import GroupRequested, TaskMeasured
from schemas.topics import Topic
from streams.pool.evidence import SealLog
from streams.pool.fold import evolve, skip
from streams.pool.state import PoolState


@dataclass(slots=True)
class Views:
    """The learner's folds. Each reads one topic."""

    history: History = field(default_factory=History)
    pool: PoolState = field(default_factory=PoolState)
    seals: SealLog = field(default_factory=SealLog)
    measured: dict[str, TaskMeasured] = field(default_factory=dict)
    trajectories: TrajectoryBuffer = field(default_factory=TrajectoryBuffer)
    requested: set[str] = field(default_factory=set)

    def folds(self, trajectories: bool) -> dict[Topic, Callable[[int, int, Any], None]]:
        """What the log feeds, topic by topic."""
        folds: dict[Topic, Callable[[int, int, Any], None]] = {
            Topic.EPOCHS: lambda _, offset, event: self.history.evolve(offset, event) if event else None,
            Topic.POOL: self._on_pool,
            Topic.SEALS: lambda _, offset, event: self.seals.evolve(offset, event) if event else None,
            Topic.MEASUREMENTS: self._on_measured,
            Topic.ASSIGNMENTS: self._on_requested,
        }
        if trajectories:
            folds[Topic.TRAJECTORIES] = lambda _, __, event: self.trajectories.evolve(event) if event else None
        return folds

    def _on_pool(self, _: int, offset: int, event: Any) -> None:
        self.pool = skip(self.pool, offset) if event is None else evolve(self.pool, offset, event)

    def _on_measured(self, _: int, __: int, event: Any) -> None:
        if isinstance(event, TaskMeasured):
            self.measured.setdefault(event.group, event)

    def _on_requested(self, _: int, __: int, event: Any) -> None:
        if isinstance(event, GroupRequested):
            self.requested.add(event.group)
