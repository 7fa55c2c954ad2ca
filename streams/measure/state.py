"""What measure knows of one partition of `rods.rollouts`: frozen values that share structure.

Between two barriers only `results` and the counts change; a barrier empties `results`. So everything that a seal does
not carry can be folded again from the events after its barrier.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NamedTuple

from schemas.envelope import Event
from schemas.rollouts import RolloutFinished, TaskMeasured
from schemas.rules import MeasureRules, Rules
from schemas.seals import PartitionSealed, TaskState
from streams.measure.grown import Grown
from streams.measure.outcome import Outcome
from streams.measure.view import Accepted

UNTOLD = Rules(measure=MeasureRules(window=1, alpha_low=Decimal("0.20"), alpha_high=Decimal("0.85")))
"""The rules of the views before a partition's first barrier brings the run's: the paper's thresholds, never changed, so
that a replay gives the same views whatever the defaults of its code."""


class Shape(NamedTuple):
    """What a barrier expects of a group. Results of other shapes do not count for that group."""

    group: str
    task: str
    purpose: str
    k: int
    turns_total: int
    category: str


class Result(NamedTuple):
    """The first result of its shape, its offset, what its slots are worth, and what its task would be if the step
    closed by the rules known so far."""

    offset: int
    event: RolloutFinished
    outcome: Outcome
    task: TaskState


@dataclass(frozen=True, slots=True)
class Counts:
    """Deliveries since the last seal that changed nothing. Metrics, never decisions.

    late: results of a sealed step.
    duplicate: second results of a group and second barriers.
    refused: to the dead letters.
    unexpected: results of groups that the barrier did not name.
    superseded: events of an older learner.
    """

    late: int = 0
    duplicate: int = 0
    refused: int = 0
    unexpected: int = 0
    superseded: int = 0


@dataclass(frozen=True, slots=True)
class MeasureState:
    """One partition. epoch, step, partitions (N): of the last barrier, 0 before the first.

    next_offset: the offset the fold expects next.
    generation: the newest learner's seen here.
    rules: the last barrier's; `UNTOLD` before the first, for the view alone.
    """

    partition: int
    partitions: int = 0
    next_offset: int = 0
    epoch: int = 0
    step: int = 0
    generation: int = 0
    rules: Rules = UNTOLD
    tasks: Mapping[str, TaskState] = field(default_factory=dict)
    results: Grown[Shape, Result] = field(default_factory=Grown)
    counts: Counts = Counts()

    def counting(
        self, *, late: int = 0, duplicate: int = 0, refused: int = 0, unexpected: int = 0, superseded: int = 0
    ) -> "MeasureState":
        """The state with deliveries counted."""
        old = self.counts
        counts = Counts(
            old.late + late,
            old.duplicate + duplicate,
            old.refused + refused,
            old.unexpected + unexpected,
            old.superseded + superseded,
        )
        return replace(self, counts=counts)


class Refusal(NamedTuple):
    """An event for the dead letters, with its offset."""

    offset: int
    event: Event
    reason: str


@dataclass(frozen=True, slots=True)
class Evolved:
    """What follows from an event. seals: the chunks of one seal, in order; they cover every offset below
    `state.next_offset`."""

    state: MeasureState
    accepted: Accepted | None = None
    seals: tuple[PartitionSealed, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def measured(self) -> TaskMeasured | None:
        """The view of the accepted result, made when it is asked for."""
        return self.accepted.view() if self.accepted else None
