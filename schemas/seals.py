"""`rods.seals` and `rods.seeds`: what the streams decide. Seals are the changelog of `measure`."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from schemas.envelope import RECURRING, UNSTAMPED, Envelope


class Zone(StrEnum):
    """Where the mean progress of a task's window lies. NONE: no live slot was ever measured."""

    MASTERED = "mastered"
    BOUNDARY = "boundary"
    HARD = "hard"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class WindowGroup:
    """A measured group in integers: n live slots, Σp and Σp² of their passed turns, T turns in total."""

    group: str
    n: int
    sum_passed: int
    sum_squares: int
    turns_total: int


@dataclass(frozen=True, slots=True)
class TaskState:
    """What measure keeps per task: the window (oldest first), visits, and streaks of consecutive visits whose window
    mean is below drift_low or above drift_high."""

    task: str
    category: str
    window: tuple[WindowGroup, ...]
    visits: int
    low_streak: int
    high_streak: int


@dataclass(frozen=True, slots=True)
class SealedGroup:
    """A group as a step's barrier found it.

    execution: the winning one, empty where the group is missing.
    passed: slot by slot, turns passed or None where the slot failed.
    reasons: slot by slot, the failure or empty.
    state: the task's after this step; a group without a live slot leaves it as it was.
    boundary: zone is boundary and the window's variance exceeds min_variance.
    """

    group: str
    task: str
    purpose: str
    category: str
    execution: str
    turns_total: int
    passed: tuple[int | None, ...]
    reasons: tuple[str, ...]
    policy_versions: tuple[int, ...]
    trajectories: tuple[str, ...]
    zone: str
    boundary: bool
    state: TaskState


@dataclass(frozen=True, slots=True)
class PartitionSealed:
    """A partition's answer to a barrier. A large one comes in `chunks`, each below 4 MiB, in order.

    barrier_offset: the barrier's offset in `rods.rollouts`; outside the digest.
    digest: sha256 over the decision content of all chunks.
    groups: those expected, ordered by task id.
    state: with last_of_epoch, every task's state (a snapshot seal).
    late, duplicate, refused: counts since the last seal; metrics, outside the digest.
    generation: the newest learner's that the partition had seen, so that a fold rebuilt from seals still ignores older
        learners; outside the digest.
    """

    KIND: ClassVar[str] = "PartitionSealed"
    epoch: int
    step: int
    partition: int
    partitions: int
    chunk: int
    chunks: int
    barrier_offset: int
    last_of_epoch: bool
    rules: str
    pool_offset: int
    digest: str
    groups: tuple[SealedGroup, ...]
    state: tuple[TaskState, ...] = field(metadata={RECURRING: True})
    late: int
    duplicate: int
    refused: int
    generation: int = 0
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), str(self.step), str(self.partition), str(self.chunk))


@dataclass(frozen=True, slots=True)
class SelectedSeed:
    """A seed in the order of its selection. phi and variance are exact: ``numerator/denominator``."""

    seed: str
    task: str
    category: str
    phi: str
    variance: str
    rank: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SelectionClosed:
    """A step's selection is final, possibly empty. digest: sha256 chain over its seeds and the previous digest."""

    KIND: ClassVar[str] = "SelectionClosed"
    epoch: int
    step: int
    seeds: tuple[SelectedSeed, ...]
    quota: int
    pool_offset: int
    digest: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), str(self.step))


@dataclass(frozen=True, slots=True)
class BoundarySeedSelected:
    """Work for synthesis. Key: task.

    rules: canonical JSON, for budgets and the run's seed.
    evidence: group ids.
    """

    KIND: ClassVar[str] = "BoundarySeedSelected"
    epoch: int
    step: int
    seed: str
    task: str
    category: str
    phi: float
    variance: float
    rank: int
    quota: int
    evidence: tuple[str, ...]
    rules: str
    pool_offset: int
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), str(self.step), self.task)
