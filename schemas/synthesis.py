"""`rods.synthesis`: the result of each stage of synthesis. Key: task (the seed's); N partitions."""

from dataclasses import dataclass
from typing import ClassVar

from schemas.envelope import UNSTAMPED, Envelope


@dataclass(frozen=True, slots=True)
class StageFinished:
    """A stage of one attempt for one variant of a seed.

    index: the variant's, from 0.
    attempt: from 0.

    detail: canonical JSON, at most 4,000 characters.
    patches: changes to the initial state, ``path=value``.
    """

    KIND: ClassVar[str] = "StageFinished"
    seed: str
    task: str
    epoch: int
    step: int
    index: int
    attempt: int
    stage: str
    ordinal: int
    ok: bool
    detail: str
    patches: tuple[str, ...]
    tokens: int
    backbone: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.seed, str(self.index), str(self.attempt), self.stage, str(self.ordinal))


@dataclass(frozen=True, slots=True)
class VariantRejected:
    """An attempt that did not become a variant, and why."""

    KIND: ClassVar[str] = "VariantRejected"
    seed: str
    task: str
    epoch: int
    step: int
    index: int
    attempt: int
    stage: str
    reason: str
    patches: tuple[str, ...]
    tokens: int
    backbone: str
    envelope: Envelope = UNSTAMPED

    @property
    def natural_key(self) -> tuple[str, ...]:
        return (self.seed, str(self.index), str(self.attempt), self.stage)
