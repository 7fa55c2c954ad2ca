"""The outcome of a run, epoch by epoch: a view of its events for people. It decides nothing.

`SummaryFold` takes events of any topics in any interleaving, a second delivery changes nothing, and `summary()` may be
asked at any time. All that is counted comes from the log, so that the table, the report and the archive agree.
"""

from collections import Counter
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from rods.reports.uplift import Uplift, mean, paired_uplift
from schemas.epochs import AlarmRaised, EpochClosed, EpochOpened, PolicyEvaluated, StepClosed, StepOpened
from schemas.pool import (
    PoolMaterialized,
    SeedSettled,
    TaskInjected,
    TaskRegistered,
    TaskRetired,
    TaskSet,
    VariantVerified,
)
from schemas.rollouts import Purpose, TaskMeasured
from schemas.seals import PartitionSealed, SealedGroup, SelectionClosed, Zone
from schemas.synthesis import VariantRejected

POOL_UPLIFT = "pool at the start"
HELDOUT_UPLIFT = "held out"


@dataclass(frozen=True, slots=True)
class EpochSummary:
    """One epoch. Epoch 0 is the state before training: the first pool and evaluation, and nothing else.
    None: not known (yet)."""

    epoch: int
    progress_pool: float | None  # mean over the train groups with a live attempt of their mean progress
    progress_heldout: float | None  # mean over tasks, after the epoch
    flat_share: float | None  # of those train groups, the share without variance
    zones: dict[str, int]  # train groups by zone
    seeds: int  # selected
    variants_verified: int  # of the epoch's seeds
    variants_rejected: dict[str, int]  # of the epoch's seeds, by reason
    injected: int  # at the epoch's boundary, as all of the pool's figures
    retired: dict[str, int]  # by rule
    pool_size: int
    originals: int
    variants: int
    pool_digest: str
    variants_trained: int  # generated tasks that a train group of the epoch measured
    groups_trained: int
    steps: int
    seconds: float | None  # from its opening to its close


@dataclass(frozen=True, slots=True)
class Moment:
    """The progress of the run: the newest step, its groups, and how many of them are measured."""

    epoch: int = 0
    step: int = 0
    groups: int = 0
    measured: int = 0

    @property
    def in_flight(self) -> int:
        return self.groups - self.measured


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A whole run.

    rules: canonical JSON, of its first epoch.
    lineage: counts on the way from seed to retirement.
    """

    run_id: str
    rules: str
    epochs: tuple[EpochSummary, ...]
    rises: tuple[Uplift, ...]
    lineage: dict[str, int]
    alarms: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """As JSON holds it: plain values, the keys of the fields."""
        document: dict[str, Any] = asdict(self)
        for row, uplift in zip(document["rises"], self.rises, strict=True):
            row["errors"] = uplift.errors
        return document


_OF_THE_RUN = (StepOpened, TaskMeasured, TaskRegistered, SeedSettled, AlarmRaised)
_OF_AN_EPOCH = (
    *(EpochOpened, EpochClosed, StepClosed, PolicyEvaluated, PartitionSealed, SelectionClosed),
    *(VariantRejected, VariantVerified, TaskInjected, TaskRetired, PoolMaterialized),
)


@dataclass(slots=True)
class _Epoch:
    """What one epoch's events have said so far. groups: train groups by id."""

    opened: int | None = None
    closed: int | None = None
    trained: int = 0
    steps: int = 0
    seeds: int = 0
    verified: int = 0
    injected: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    retired: Counter[str] = field(default_factory=Counter)
    groups: dict[str, SealedGroup] = field(default_factory=dict)
    pool: PoolMaterialized | None = None
    evaluations: dict[float, dict[str, Fraction]] = field(default_factory=dict)

    def progress(self) -> dict[str, Fraction]:
        """Task to mean progress, over its live attempts of the epoch's train groups."""
        live = [(group.task, value) for group in self.groups.values() if (value := progress_of(group)) is not None]
        return dict(live)

    def evolve(self, event: Any) -> None:
        match event:
            case EpochOpened():
                self.opened = event.envelope.occurred_at
            case EpochClosed():
                self.closed = event.envelope.occurred_at
            case StepClosed():
                self.steps, self.trained = self.steps + 1, self.trained + event.trained
            case PolicyEvaluated():
                self.evaluations[event.temperature] = {
                    result.task: Fraction(result.turns_passed, result.live * result.turns_total)
                    for result in event.results
                    if result.live > 0 and result.turns_total > 0
                }
            case PartitionSealed():
                self.groups |= {group.group: group for group in event.groups if group.purpose == Purpose.TRAIN}
            case SelectionClosed():
                self.seeds += len(event.seeds)
            case VariantRejected():
                self.rejected[event.reason] += 1
            case VariantVerified():
                self.verified += 1
            case TaskInjected():
                self.injected += 1
            case TaskRetired():
                self.retired[event.rule] += 1
            case PoolMaterialized():
                self.pool = event


class SummaryFold:
    """Events in, summaries out. Events must be stamped: their ids tell deliveries apart."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._epochs: dict[int, _Epoch] = {}
        self._run_id = self._rules = ""
        self._variants: set[str] = set()
        self._returned = 0
        self._originals: Counter[str] = Counter()
        self._settled: dict[str, str] = {}
        self._alarms: list[str] = []
        self._steps: dict[int, StepOpened] = {}
        self._measured: set[str] = set()

    def evolve(self, event: Any) -> None:
        """Takes an event in; one that was taken already, or that says nothing here, changes nothing."""
        if not isinstance(event, _OF_THE_RUN + _OF_AN_EPOCH) or event.envelope.event_id in self._seen:
            return
        self._seen.add(event.envelope.event_id)
        self._run_id = self._run_id or event.envelope.run_id
        match event:
            case StepOpened():
                self._steps[event.step] = event
            case TaskMeasured():
                self._measured.add(event.group)
            case TaskRegistered():
                self._originals[event.task_set] += 1
            case SeedSettled():
                self._settled[event.seed] = event.outcome
            case AlarmRaised():
                self._alarms.append(f"epoch {event.epoch}: {event.kind}: {event.detail}")
            case EpochOpened():
                self._rules = self._rules or event.rules
            case VariantVerified():
                self._variants.add(event.definition.task)
            case TaskInjected():
                self._returned += event.returned
        held_out = not isinstance(event, PolicyEvaluated) or event.task_set == TaskSet.HELDOUT
        if isinstance(event, _OF_AN_EPOCH) and held_out:
            self._epochs.setdefault(event.epoch, _Epoch()).evolve(event)

    @property
    def moment(self) -> Moment:
        """The newest step that was opened."""
        if not self._steps:
            return Moment()
        newest = self._steps[max(self._steps)]
        measured = sum([group.group in self._measured for group in newest.groups])
        return Moment(newest.epoch, newest.step, len(newest.groups), measured)

    def rows(self) -> tuple[EpochSummary, ...]:
        """A row for every epoch that anything was said of, in order."""
        return tuple([self._row(epoch) for epoch in sorted(self._epochs)])

    def summary(self) -> RunSummary:
        """All of it."""
        return RunSummary(
            run_id=self._run_id,
            rules=self._rules,
            epochs=self.rows(),
            rises=tuple([uplift for uplift in (self._pool_uplift(), *self._heldout_uplifts()) if uplift]),
            lineage=self._lineage(),
            alarms=tuple(self._alarms),
        )

    def _row(self, number: int) -> EpochSummary:
        epoch = self._epochs[number]
        progress = [value for group in epoch.groups.values() if (value := progress_of(group)) is not None]
        flat = sum([is_flat(group) for group in epoch.groups.values()])
        members = epoch.pool.members if epoch.pool else ()
        variants = sum([task in self._variants for task in members])
        zones = Counter(group.zone for group in epoch.groups.values())
        heldout = self._heldout(epoch)
        return EpochSummary(
            epoch=number,
            progress_pool=float(mean(progress)) if progress else None,
            progress_heldout=float(mean(list(heldout.values()))) if heldout else None,
            flat_share=flat / len(progress) if progress else None,
            zones={zone.value: zones[zone.value] for zone in Zone},
            seeds=epoch.seeds,
            variants_verified=epoch.verified,
            variants_rejected=dict(sorted(epoch.rejected.items())),
            injected=epoch.injected,
            retired=dict(sorted(epoch.retired.items())),
            pool_size=len(members),
            originals=len(members) - variants,
            variants=variants,
            pool_digest=epoch.pool.digest if epoch.pool else "",
            variants_trained=len(self._variants & epoch.progress().keys()),
            groups_trained=epoch.trained,
            steps=epoch.steps,
            seconds=(epoch.closed - epoch.opened) / 1e6 if epoch.opened and epoch.closed else None,
        )

    def _heldout(self, epoch: _Epoch) -> dict[str, Fraction]:
        """The evaluation at the highest temperature, which is the one that sampling trains at."""
        return epoch.evaluations[max(epoch.evaluations)] if epoch.evaluations else {}

    def _pool_uplift(self) -> Uplift | None:
        """Of the tasks that were in the pool at the start, between the first and the last epoch that measured."""
        start = self._epochs.get(0, _Epoch()).pool
        measured = [number for number in sorted(self._epochs) if self._epochs[number].groups]
        if start is None or len(measured) < 2:
            return None
        first, last = measured[0], measured[-1]
        kept = {task: value for task, value in self._epochs[first].progress().items() if task in start.members}
        return paired_uplift(POOL_UPLIFT, first, kept, last, self._epochs[last].progress())

    def _heldout_uplifts(self) -> list[Uplift | None]:
        """Of the held-out tasks, between the first and the last evaluation at each temperature."""
        by_temperature: dict[float, list[tuple[int, dict[str, Fraction]]]] = {}
        for number in sorted(self._epochs):
            for temperature, results in self._epochs[number].evaluations.items():
                by_temperature.setdefault(temperature, []).append((number, results))
        return [
            paired_uplift(f"{HELDOUT_UPLIFT}, temperature {temperature:g}", *found[0], *found[-1])
            for temperature, found in sorted(by_temperature.items())
            if len(found) > 1
        ]

    def _lineage(self) -> dict[str, int]:
        epochs = list(self._epochs.values())
        outcomes = Counter(self._settled.values())
        pools = [epoch.pool for _, epoch in sorted(self._epochs.items()) if epoch.pool]
        trained = {task for epoch in epochs for task in epoch.progress()} & self._variants
        members = set(pools[-1].members) if pools else set()
        return {
            "originals_registered": self._originals[TaskSet.POOL],
            "heldout_registered": self._originals[TaskSet.HELDOUT],
            "seeds_selected": sum(epoch.seeds for epoch in epochs),
            **{f"seeds_{outcome}": count for outcome, count in sorted(outcomes.items())},
            "variants_rejected": sum(epoch.rejected.total() for epoch in epochs),
            "variants_verified": len(self._variants),
            "variants_waiting": len(pools[-1].queue) if pools else 0,
            "tasks_injected": sum(epoch.injected for epoch in epochs),
            "tasks_returned": self._returned,
            "variants_trained": len(trained),
            "tasks_retired": sum(epoch.retired.total() for epoch in epochs),
            "variants_in_pool": len(members & self._variants),
        }


def progress_of(group: SealedGroup) -> Fraction | None:
    """Mean progress of a group's live attempts; None where none is live, or where the seal names no turns."""
    live = [passed for passed in group.passed if passed is not None]
    return Fraction(sum(live), len(live) * group.turns_total) if live and group.turns_total > 0 else None


def is_flat(group: SealedGroup) -> bool:
    """Whether a group has live attempts and all of them came equally far, so that it gives no gradient."""
    return len({passed for passed in group.passed if passed is not None}) == 1
