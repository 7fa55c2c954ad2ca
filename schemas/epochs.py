"""`rods.epochs`: the course of training, written by the learner alone. Key: run; one partition."""

from dataclasses import dataclass
from typing import ClassVar

from schemas.envelope import UNSTAMPED, Envelope


@dataclass(frozen=True, slots=True)
class LearnerStarted:
    """A learner claims a generation. Written to every partition the learner writes to; the first nonce wins."""

    KIND: ClassVar[str] = "LearnerStarted"
    generation: int
    nonce: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.generation), self.nonce)


@dataclass(frozen=True, slots=True)
class EpochOpened:
    """The rules an epoch is decided by, as canonical JSON, and what it runs on. Epochs count from 1.

    partitions: N of the run.
    packages: distribution name to version.
    *_digest: sha256, hexadecimal.
    """

    KIND: ClassVar[str] = "EpochOpened"
    generation: int
    epoch: int
    rules: str
    partitions: int
    code_revision: str
    packages: dict[str, str]
    source_digest: str
    model_digest: str
    tokenizer_digest: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch),)


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """A group as a step names it."""

    group: str
    task: str
    purpose: str


@dataclass(frozen=True, slots=True)
class StepOpened:
    """A whole step in one event; its GroupRequested follow from it. Steps count from 1 through the run."""

    KIND: ClassVar[str] = "StepOpened"
    generation: int
    epoch: int
    step: int
    groups: tuple[PlannedGroup, ...]
    k: int
    policy_version: int
    last_of_epoch: bool
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), str(self.step))


@dataclass(frozen=True, slots=True)
class StepClosed:
    """The result of a step.

    measured: train groups of the seals with a live slot.
    missing: train groups of the seals without one.
    flat: measured groups without variance (zero-variance groups).
    trained: measured groups trained on.
    stale: measured groups left out because the policy that sampled them was too old.
    unmatched: attempts whose trajectory was not found.
    progress: mean over live attempts.
    loss, kl, entropy (nats per token), clip_share, gradient_norm: None where nothing was trained.
    response_length: sampled tokens per attempt.
    idle_seconds: time the learner waited, by cause.
    """

    KIND: ClassVar[str] = "StepClosed"
    generation: int
    epoch: int
    step: int
    policy_version: int
    measured: int
    missing: int
    flat: int
    trained: int
    stale: int
    unmatched: int
    progress: float | None
    loss: float | None
    kl: float | None
    entropy: float | None
    clip_share: float | None
    gradient_norm: float | None
    response_length: float | None
    tokens_per_second: float | None
    idle_seconds: dict[str, float]
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch), str(self.step))


@dataclass(frozen=True, slots=True)
class EpochClosed:
    """An epoch's steps are done and its boundary is materialised as `pool_version`."""

    KIND: ClassVar[str] = "EpochClosed"
    generation: int
    epoch: int
    pool_version: int
    pool_digest: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.epoch),)


@dataclass(frozen=True, slots=True)
class PolicyPublished:
    """Weights that samplers take from now on. sha256: of the safetensors file at `location`; both empty for a policy
    without weights."""

    KIND: ClassVar[str] = "PolicyPublished"
    generation: int
    version: int
    location: str
    sha256: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.version),)


@dataclass(frozen=True, slots=True)
class EvaluatedTask:
    """A task's evaluation: the sum of passed turns over `live` attempts of `turns_total` turns."""

    task: str
    live: int
    turns_passed: int
    turns_total: int


@dataclass(frozen=True, slots=True)
class PolicyEvaluated:
    """Paired results of a version on a task set, task by task, at a temperature. It decides nothing."""

    KIND: ClassVar[str] = "PolicyEvaluated"
    generation: int
    version: int
    task_set: str
    temperature: float
    epoch: int
    results: tuple[EvaluatedTask, ...]
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (str(self.version), self.task_set, str(self.temperature))


@dataclass(frozen=True, slots=True)
class AlarmRaised:
    """Something a person should know; training goes on. kind: for example ``starvation`` or ``depletion``."""

    KIND: ClassVar[str] = "AlarmRaised"
    generation: int
    kind: str
    epoch: int
    step: int
    detail: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.kind, str(self.epoch), str(self.step))
