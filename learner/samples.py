"""From seals and trajectories to training samples. Pure.

What counts comes from the seals: the winning execution of each group and, slot by slot, turns passed or None. A
trajectory is used if its execution won and its sha256 is the one the seal names; a missing one is measured and counted,
not trained on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from learner.advantage import group_advantages, has_variance
from learner.engine import TrainingSample
from learner.in_flight import InFlight
from schemas.identity import trajectory_digest
from schemas.rollouts import Purpose, TrajectoryRecorded
from schemas.seals import SealedGroup

Key = tuple[str, str, int]
"""group, execution, attempt."""


@dataclass(slots=True)
class TrajectoryBuffer:
    """Trajectories of the step in hand. The first of a key is kept; those of other steps are not held."""

    step: int = 0
    held: dict[Key, TrajectoryRecorded] = field(default_factory=dict)

    def open(self, step: int) -> None:
        """Starts a step; lets go of the ones before."""
        self.step = step
        self.held = {key: kept for key, kept in self.held.items() if kept.step >= step}

    def evolve(self, event: TrajectoryRecorded) -> None:
        """Takes a trajectory of this step or a later one."""
        if event.step >= self.step:
            self.held.setdefault((event.group, event.execution, event.attempt), event)


@dataclass(frozen=True, slots=True)
class StepBatch:
    """What a step gives to train on, and what it does not. Counts are of train groups where nothing else is said."""

    samples: tuple[TrainingSample, ...]
    measured: int
    missing: int  # no live slot
    flat: int  # zero-variance groups
    trained: int
    stale: int  # only slots sampled by too old a policy
    unmatched: int  # attempts without their trajectory
    progress: float | None  # mean over live attempts


def step_batch(
    groups: Iterable[SealedGroup], held: Mapping[Key, TrajectoryRecorded], version: int, in_flight: InFlight
) -> StepBatch:
    """The batch of a step for policy `version`, in the order of the seals."""
    samples: list[TrainingSample] = []
    measured = missing = flat = trained = stale = unmatched = live = 0
    progress = 0.0
    for group in groups:
        if group.purpose != Purpose.TRAIN:
            continue
        passed = [value for value in group.passed if value is not None]
        missing, measured = missing + (not passed), measured + bool(passed)
        live += len(passed)
        progress += sum(passed) / group.turns_total
        if passed and not has_variance(group.passed):
            flat += 1
        elif passed:
            chosen, lost, old = _samples(group, held, version, in_flight)
            samples += chosen
            unmatched += lost
            trained, stale = trained + bool(chosen), stale + (not chosen and old > 0)
    mean = progress / live if live else None
    return StepBatch(tuple(samples), measured, missing, flat, trained, stale, unmatched, mean)


def _samples(
    group: SealedGroup, held: Mapping[Key, TrajectoryRecorded], version: int, in_flight: InFlight
) -> tuple[list[TrainingSample], int, int]:
    """The group's samples, the number of unmatched attempts, and of stale ones."""
    chosen: list[TrainingSample] = []
    lost = old = 0
    for attempt, advantage in enumerate(group_advantages(group.passed, group.turns_total)):
        if advantage is None:
            continue
        if not in_flight.fresh(group.policy_versions[attempt], version):
            old += 1
            continue
        trajectory = held.get((group.group, group.execution, attempt))
        if trajectory is None or not _matches(trajectory, group.trajectories[attempt]):
            lost += 1
            continue
        mask = [flag == 1 for flag in trajectory.loss_mask]
        if any(mask):
            chosen.append(TrainingSample(trajectory.token_ids, trajectory.logprobs, mask, advantage))
    return chosen, lost, old


def awaited(groups: Iterable[SealedGroup]) -> set[Key]:
    """The trajectories that a step may train on."""
    return {
        (group.group, group.execution, attempt)
        for group in groups
        if group.purpose == Purpose.TRAIN and has_variance(group.passed)
        for attempt, passed in enumerate(group.passed)
        if passed is not None
    }


def _matches(trajectory: TrajectoryRecorded, sha256: str) -> bool:
    """Whether it is the one the seal names, and sound: a worker's fault must not reach the weights."""
    lengths = {len(trajectory.token_ids), len(trajectory.logprobs), len(trajectory.loss_mask)}
    if len(lengths) != 1 or not all(map(isfinite, trajectory.logprobs)):
        return False
    found = trajectory_digest(trajectory.token_ids, trajectory.logprobs, trajectory.loss_mask, trajectory.messages)
    return found == sha256
