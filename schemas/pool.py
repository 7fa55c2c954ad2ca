"""`rods.pool`: the life of tasks, and who may decide it. Key: run; one partition. Also `rods.dead-letters`."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from schemas.envelope import UNSTAMPED, Envelope
from schemas.task import TaskDefinition


class TaskSet(StrEnum):
    """What an original is registered for."""

    POOL = "pool"
    HELDOUT = "heldout"


class Settlement(StrEnum):
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"


class RetirementRule(StrEnum):
    """The rule that retires a task."""

    BURN_IN = "burn_in"
    DRIFT_HIGH = "drift_high"
    DRIFT_LOW = "drift_low"
    PRUNING = "pruning"
    OPERATOR = "operator"


class Decision(StrEnum):
    PIN = "pin"
    BAN = "ban"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True)
class TaskRegistered:
    """An original with its complete definition.

    task_set: whether it is a member of the pool from the start, or held out.
    """

    KIND: ClassVar[str] = "TaskRegistered"
    generation: int
    definition: TaskDefinition
    task_set: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.definition.task,)


@dataclass(frozen=True, slots=True)
class VariantVerified:
    """A variant that passed every gate, with its definition. It waits in the queue until a boundary injects it.

    seed, epoch, step and rank place it in the queue's order; content is the sha256 of the definition without its id.
    """

    KIND: ClassVar[str] = "VariantVerified"
    seed: str
    epoch: int
    step: int
    rank: int
    definition: TaskDefinition
    content: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.definition.task,)


@dataclass(frozen=True, slots=True)
class SeedSettled:
    """The end of a seed. The first settlement counts. generation: the learner's where it expired the seed, else 0."""

    KIND: ClassVar[str] = "SeedSettled"
    generation: int
    seed: str
    epoch: int
    step: int
    outcome: str
    variants: int
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.seed,)


@dataclass(frozen=True, slots=True)
class BoundaryOpened:
    """Fixes the cut of an epoch's boundary: candidates before it, from seeds of steps up to last_seed_step; seals up to
    the SelectionClosed of last_step whose digest is named. rules: canonical JSON, those of the epoch."""

    KIND: ClassVar[str] = "BoundaryOpened"
    generation: int
    epoch: int
    last_step: int
    last_seed_step: int
    selection_digest: str
    rules: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch),)


@dataclass(frozen=True, slots=True)
class TaskInjected:
    """A variant, or a probed task that returns, becomes a member at an epoch's boundary."""

    KIND: ClassVar[str] = "TaskInjected"
    generation: int
    epoch: int
    task: str
    seed: str
    returned: bool
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), self.task)


@dataclass(frozen=True, slots=True)
class TaskRetired:
    """A member leaves.

    mean, phi: exact, ``numerator/denominator``, empty if never measured.
    evidence: group ids.
    """

    KIND: ClassVar[str] = "TaskRetired"
    generation: int
    epoch: int
    task: str
    rule: str
    mean: str
    phi: str
    visits: int
    evidence: tuple[str, ...]
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), self.task)


@dataclass(frozen=True, slots=True)
class TaskProbed:
    """A retired task was run once more during the epoch; what its probe showed."""

    KIND: ClassVar[str] = "TaskProbed"
    generation: int
    epoch: int
    task: str
    zone: str
    mean: str
    boundary: bool
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), self.task)


@dataclass(frozen=True, slots=True)
class PoolMaterialized:
    """The pool that the next epoch trains on. Epoch 0 is the pool before training.

    digest: sha256 over members, queue, retired, streaks, rules and the previous digest (a chain).
    offsets: end offsets of what was folded, ``topic/partition`` to offset; they and the generation are outside the
        digest.
    """

    KIND: ClassVar[str] = "PoolMaterialized"
    generation: int
    epoch: int
    version: int
    digest: str
    previous_digest: str
    members: tuple[str, ...]
    queue: tuple[str, ...]
    injected: int
    retired: int
    offsets: dict[str, int]
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch),)


@dataclass(frozen=True, slots=True)
class OperatorDecided:
    """A person pins, bans or retires a task."""

    KIND: ClassVar[str] = "OperatorDecided"
    decision_id: str
    task: str
    decision: str
    who: str
    why: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.decision_id,)


@dataclass(frozen=True, slots=True)
class EventRefused:
    """Bytes that a reader refused. value: at most 64 KiB of them; sha256 is of them all."""

    KIND: ClassVar[str] = "EventRefused"
    topic: str
    partition: int
    offset: int
    sha256: str
    value: bytes
    reason: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.topic, str(self.partition), str(self.offset))
