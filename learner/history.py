"""What `rods.epochs` says of the run so far: a fold that a learner starts from."""

from dataclasses import dataclass, field
from typing import Any

from eventlog.fence import superseded
from schemas.epochs import (
    AlarmRaised,
    EpochClosed,
    EpochOpened,
    LearnerStarted,
    PolicyEvaluated,
    PolicyPublished,
    StepClosed,
    StepOpened,
)


@dataclass(slots=True)
class History:
    """Facts by their natural key, the first one winning; events of an older generation than the newest are ignored.

    claims: generation to the nonce that came first.
    """

    next_offset: int = 0
    run_id: str = ""
    claims: dict[int, str] = field(default_factory=dict)
    epochs_opened: dict[int, EpochOpened] = field(default_factory=dict)
    epochs_closed: dict[int, EpochClosed] = field(default_factory=dict)
    steps_opened: dict[int, StepOpened] = field(default_factory=dict)
    steps_closed: dict[int, StepClosed] = field(default_factory=dict)
    policies: dict[int, PolicyPublished] = field(default_factory=dict)
    evaluated: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def generation(self) -> int:
        """The newest generation; 0 before any learner."""
        return max(self.claims, default=0)

    def evolve(self, offset: int, event: Any) -> None:
        if offset < self.next_offset:
            return
        self.next_offset = offset + 1
        self.run_id = self.run_id or event.envelope.run_id
        if isinstance(event, LearnerStarted):
            self.claims.setdefault(event.generation, event.nonce)
        elif not superseded(event, self.generation):
            self._take(event)

    def _take(self, event: Any) -> None:
        match event:
            case EpochOpened():
                self.epochs_opened.setdefault(event.epoch, event)
            case EpochClosed():
                self.epochs_closed.setdefault(event.epoch, event)
            case StepOpened():
                self.steps_opened.setdefault(event.step, event)
            case StepClosed():
                self.steps_closed.setdefault(event.step, event)
            case PolicyPublished():
                self.policies.setdefault(event.version, event)
            case PolicyEvaluated():
                self.evaluated.add(event.natural_key)
            case AlarmRaised():
                pass
            case _:
                raise TypeError(f"rods.epochs carries no {type(event).__name__}")

    def first_step_of(self, epoch: int) -> int:
        """Where an epoch's steps start: after those of the epochs before it."""
        return 1 + max((step for step, opened in self.steps_opened.items() if opened.epoch < epoch), default=0)

    @property
    def last_closed_step(self) -> int:
        """0 before any."""
        return max(self.steps_closed, default=0)

    @property
    def newest_policy(self) -> int:
        """The newest policy version; -1 before any."""
        return max(self.policies, default=-1)
