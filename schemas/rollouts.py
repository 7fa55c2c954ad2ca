"""`rods.assignments`, `rods.rollouts`, `rods.trajectories` and `rods.measurements`. Key: task; N partitions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from schemas.envelope import UNSTAMPED, Envelope


class Purpose(StrEnum):
    """Why a group is run. Groups to evaluate enter no barrier, no zone and no batch."""

    TRAIN = "train"
    PROBE = "probe"
    EVALUATE = "evaluate"

    @property
    def measured(self) -> bool:
        return self is not Purpose.EVALUATE


class SlotStatus(StrEnum):
    FINISHED = "finished"
    FAILED = "failed"


class FailureReason(StrEnum):
    """Infrastructure failures. They carry no reward: None is not zero."""

    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"
    ENVIRONMENT = "environment_error"
    CHECKER = "checker_error"
    POLICY = "policy_error"
    TOO_LARGE = "too_large"
    MISSING = "missing"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class GroupRequested:
    """Asks for K attempts at a task.

    seed: the run's; attempt randomness is a hash of (seed, group, attempt).
    deadline: microseconds since the epoch; only the learner judges it.
    pool_offset: the worker folds `rods.pool` up to (excluding) it before a look-up.
    """

    KIND: ClassVar[str] = "GroupRequested"
    generation: int
    epoch: int
    step: int
    task: str
    group: str
    purpose: str
    k: int
    turns_total: int
    category: str
    policy_version: int
    temperature: float
    seed: int
    deadline: int
    pool_offset: int
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), str(self.step), self.task, self.group)


@dataclass(frozen=True, slots=True)
class Slot:
    """One attempt's outcome. A failed slot has a reason and no reward (turns_passed 0, to be ignored).

    outcomes: one per turn judged; the attempt ends at its first failed turn.
    tokens: sampled.
    latency: microseconds.
    trajectory: sha256 of the TrajectoryRecorded payload (see `trajectory_digest`), empty where there is none.
    """

    status: str
    turns_passed: int
    turns_total: int
    outcomes: tuple[bool, ...]
    tool_calls: int
    tokens: int
    latency: int
    policy_version: int
    trajectory: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RolloutFinished:
    """A group's K slots, in one message. The first of a group in partition order counts, with all its slots.

    execution: names this run of the group, so that trajectories can be matched with the slots that won.
    """

    KIND: ClassVar[str] = "RolloutFinished"
    group: str
    execution: str
    epoch: int
    step: int
    task: str
    purpose: str
    category: str
    k: int
    turns_total: int
    slots: tuple[Slot, ...]
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.group,)


@dataclass(frozen=True, slots=True)
class ExpectedGroup:
    """A train or probe group that a barrier expects on its partition."""

    group: str
    task: str
    purpose: str
    k: int
    turns_total: int
    category: str


@dataclass(frozen=True, slots=True)
class BarrierReached:
    """Closes a step on one partition: what was expected there, and the rules to measure it by.

    last_of_epoch: the seal is a snapshot seal, with the state of every task of the partition.
    pool_offset: travels to the seeds.
    """

    KIND: ClassVar[str] = "BarrierReached"
    generation: int
    epoch: int
    step: int
    partition: int
    partitions: int
    expected: tuple[ExpectedGroup, ...]
    rules: str
    last_of_epoch: bool
    pool_offset: int
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), str(self.step), str(self.partition))


@dataclass(frozen=True, slots=True)
class TrajectoryRecorded:
    """An attempt as the learner needs it, and as a person reads it.

    token_ids, logprobs (natural log at the sampling temperature; 0.0 where not sampled) and loss_mask (1: sampled) have
    equal lengths. messages: canonical JSON, a list of {role, content, calls}.
    """

    KIND: ClassVar[str] = "TrajectoryRecorded"
    group: str
    execution: str
    attempt: int
    epoch: int
    step: int
    task: str
    policy_version: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    loss_mask: bytes
    messages: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.group, self.execution, str(self.attempt))


@dataclass(frozen=True, slots=True)
class TaskMeasured:
    """A view of one group for people and dashboards; no fold reads it. variance is the sample variance of progress.

    mean, phi and variance are None where no slot is live. For an evaluate group zone is empty.
    turns_passed and turns_total: sums over live slots' passed turns, and the task's denominator.
    """

    KIND: ClassVar[str] = "TaskMeasured"
    group: str
    epoch: int
    step: int
    task: str
    purpose: str
    category: str
    mean: float | None
    phi: float | None
    variance: float | None
    live: int
    failed: int
    turns_passed: int
    turns_total: int
    visits: int
    zone: str
    policy_version: int
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.group,)
