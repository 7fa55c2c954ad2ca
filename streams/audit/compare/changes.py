"""An epoch decided twice, and what differs. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from schemas.pool import PoolMaterialized, RetirementRule, TaskInjected, TaskRetired
from schemas.rules import Rules
from streams.audit.compare.reasons import StepSide, why_kept, why_no_seed, why_not_injected, why_retired
from streams.pool.evidence import Evidence
from streams.pool.state import PoolState

_DRIFT = frozenset({RetirementRule.DRIFT_LOW.value, RetirementRule.DRIFT_HIGH.value})
_TWO_VISITS = 2


class Change(NamedTuple):
    """A decision that one side took and the other did not.

    why: of the side that did.
    why_not: of the other.
    """

    task: str
    step: int
    why: str
    why_not: str


@dataclass(slots=True)
class EpochChanges:
    """An epoch under both rules. added: decided under the other rules alone; dropped: recorded alone.

    seeds, injections, retirements: all under the other rules, in order: task and step, task, task and rule.
    drift_evictions: recorded ones for drift.
    avoided: those at the first visit out of bounds, which a patience of two would have spared.
    unknown_seeds: added seeds, whose variants nobody made.
    digest: of the other rules' pool.
    """

    epoch: int
    seeds: list[tuple[str, int]] = field(default_factory=list)
    seeds_added: list[Change] = field(default_factory=list)
    seeds_dropped: list[Change] = field(default_factory=list)
    injections: list[str] = field(default_factory=list)
    injections_added: list[Change] = field(default_factory=list)
    injections_dropped: list[Change] = field(default_factory=list)
    retirements: list[tuple[str, str]] = field(default_factory=list)
    retirements_added: list[Change] = field(default_factory=list)
    retirements_dropped: list[Change] = field(default_factory=list)
    drift_evictions: int = 0
    avoided: int = 0
    unknown_seeds: int = 0
    digest: str = ""
    recorded_digest: str = ""

    @property
    def changes(self) -> int:
        """Decisions that differ."""
        return sum(
            len(one)
            for one in (
                self.seeds_added,
                self.seeds_dropped,
                self.injections_added,
                self.injections_dropped,
                self.retirements_added,
                self.retirements_dropped,
            )
        )

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        document = asdict(self)
        for name, value in document.items():
            if isinstance(value, list):
                document[name] = [item._asdict() if isinstance(item, Change) else item for item in value]
        return document | {"changes": self.changes}


@dataclass(frozen=True, slots=True)
class Decided:
    """A boundary as one side decided it. seeds: all that it has selected so far."""

    rules: Rules
    cut: PoolState
    evidence: Evidence
    injected: Sequence[TaskInjected]
    retired: Sequence[TaskRetired]
    materialized: PoolMaterialized
    seeds: Collection[str]


def compare_step(changes: EpochChanges, step: int, recorded: StepSide, other: StepSide) -> None:
    """The seeds of a step."""
    then, now = {seed.task: seed for seed in recorded.seeds}, {seed.task: seed for seed in other.seeds}
    changes.seeds += [(task, step) for task in now]
    for task, seed in now.items():
        if task not in then:
            why = f"selected with phi {seed.phi} at rank {seed.rank}"
            changes.seeds_added.append(Change(task, step, why, why_no_seed(recorded, task, step)))
            changes.unknown_seeds += 1
    for task, seed in then.items():
        if task not in now:
            why = f"selected with phi {seed.phi} at rank {seed.rank}"
            changes.seeds_dropped.append(Change(task, step, why, why_no_seed(other, task, step)))


def compare_boundaries(changes: EpochChanges, recorded: Decided, other: Decided) -> None:
    """The injections and retirements of an epoch, and what a patience of two visits would have spared."""
    step = 0
    then, now = {event.task for event in recorded.injected}, [event.task for event in other.injected]
    changes.injections = now
    for event in other.injected:
        if event.task not in then:
            changes.injections_added.append(Change(event.task, step, "injected", _not_injected(recorded, event)))
    for event in recorded.injected:
        if event.task not in now:
            changes.injections_dropped.append(Change(event.task, step, "injected", _not_injected(other, event)))
    _retirements(changes, recorded, other)
    for gone in recorded.retired:
        if gone.rule in _DRIFT:
            state = recorded.evidence.states[gone.task]
            changes.drift_evictions += 1
            changes.avoided += max(state.low_streak, state.high_streak) < _TWO_VISITS


def _not_injected(side: Decided, event: TaskInjected) -> str:
    return why_not_injected(side.cut, side.materialized.queue, event.task, event.seed in side.seeds)


def _retirements(changes: EpochChanges, recorded: Decided, other: Decided) -> None:
    then, now = _by_task(recorded.retired), _by_task(other.retired)
    changes.retirements = [(task, event.rule) for task, event in now.items()]
    for task, event in now.items():
        if task not in then or then[task].rule != event.rule:
            changes.retirements_added.append(_retirement(event, then.get(task), recorded))
    for task, event in then.items():
        if task not in now or now[task].rule != event.rule:
            changes.retirements_dropped.append(_retirement(event, now.get(task), other))


def _retirement(event: TaskRetired, counterpart: TaskRetired | None, absent: Decided) -> Change:
    why_not = (
        f"retired by {counterpart.rule} instead"
        if counterpart
        else why_kept(absent.rules, absent.cut, absent.evidence, event.task)
    )
    return Change(event.task, 0, why_retired(event.rule, event.mean, event.visits), why_not)


def _by_task(events: Sequence[TaskRetired]) -> dict[str, TaskRetired]:
    return {event.task: event for event in events}
