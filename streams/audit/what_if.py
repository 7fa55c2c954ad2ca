"""What other rules would have decided on the same rollouts.

Off-policy: the rollouts are those of the policy that the recorded curriculum trained, so past the first epoch the
answer is about the rules, not about the training that would have followed. A task that only the other rules keep has no
further rollouts, and a seed that only they select has no variants.

Everything is decided anew by the code that decided: barriers with other rules go through the measure fold, the steps
through the selection, the boundaries through the pool's rules, over a pool of its own. Without other rules that pool is
the recorded one, with its digests.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from schemas.pool import (
    BoundaryOpened,
    PoolMaterialized,
    SeedSettled,
    TaskInjected,
    TaskProbed,
    TaskRetired,
    VariantVerified,
)
from schemas.rollouts import BarrierReached, Purpose
from schemas.rules import Rules
from schemas.seals import PartitionSealed, SealedGroup, SelectedSeed
from schemas.topics import Topic
from streams.audit.compare.changes import Decided, EpochChanges, compare_boundaries, compare_step
from streams.audit.compare.reasons import StepSide
from streams.audit.errors import AuditError, of_a_run
from streams.audit.load.source import LogSource, events
from streams.audit.overlay import Overlay
from streams.audit.recompute.select import SealedPass
from streams.errors import StreamError
from streams.measure.fold import evolve as measure
from streams.measure.fold import skip
from streams.measure.seal import join_chunks
from streams.measure.state import MeasureState
from streams.pool.decide import BoundaryDecision, decide_boundary
from streams.pool.evidence import Evidence
from streams.pool.fold import evolve
from streams.pool.state import PoolState
from streams.select.fold import selection_digest
from streams.select.select import select


@of_a_run()
def what_if(source: LogSource, overlay: Overlay, to_epoch: int | None = None) -> list[EpochChanges]:
    """The epochs of a run under other rules. Raises AuditError where the log lacks what they decide on."""
    return list(_WhatIf(source, overlay, to_epoch).epochs())


class _Other:
    """The run under the other rules, step by step."""

    def __init__(self, source: LogSource, overlay: Overlay) -> None:
        self.overlay = overlay
        self.pool = PoolState()
        self.last: dict[str, int] = {}
        self.digest = ""
        self.step = 0
        self.seeds: dict[str, SelectedSeed] = {}
        self.selected: dict[str, int] = {}
        self.groups: dict[str, SealedGroup] = {}
        self.seals: list[PartitionSealed] = []
        self.sides: dict[int, StepSide] = {}
        self._seals = [_rejudged(source, number, overlay) for number in source.partitions(Topic.ROLLOUTS)]

    def advance(self, step: int) -> bool:
        """Decides steps up to one; whether the rollouts reach that far."""
        while self.step < step:
            seals = [next(one, None) for one in self._seals]
            if not seals or None in seals:
                return False
            self._take([seal for seal in seals if seal is not None])
        return True

    def _take(self, seals: list[PartitionSealed]) -> None:
        first = seals[0]
        if len({seal.step for seal in seals}) > 1:
            raise AuditError(f"the barriers of step {first.step} do not stand on every partition")
        rules = Rules.parse(first.rules)
        groups = [group for seal in seals for group in seal.groups if self._is_run(group)]
        seeds = select(groups, rules, first.epoch, first.step, self.last)
        trained = {group.task: group for group in groups if group.purpose == Purpose.TRAIN}
        self.sides[first.step] = StepSide(rules, self.pool, trained, dict(self.last), seeds)
        self.seeds |= {seed.seed: seed for seed in seeds}
        self.selected |= {seed.seed: first.step for seed in seeds}
        self.last |= {seed.task: first.step for seed in seeds}
        self.digest = selection_digest(self.digest, first.epoch, first.step, rules.select.quota, seeds)
        if self.seals and self.seals[0].epoch != first.epoch:
            self.groups = {}
        self.groups |= {group.task: group for group in groups if Purpose(group.purpose).measured}
        self.seals, self.step = seals, first.step

    def _is_run(self, group: SealedGroup) -> bool:
        """Whether these rules would have run the group: not a task that they have retired."""
        return group.purpose != Purpose.TRAIN or group.task in self.pool.members

    def evidence(self, opened: BoundaryOpened) -> Evidence:
        if not opened.epoch:
            return Evidence(0, "", {}, {}, {})
        states = {state.task: state for seal in self.seals for state in seal.state}
        return Evidence(opened.epoch, self.digest, self.groups, states, self.selected)

    def take(self, event: Any) -> None:
        """Folds a pool event at the next offset."""
        self.pool = evolve(self.pool, self.pool.next_offset, event)

    def close(self, opened: BoundaryOpened) -> tuple[PoolState, Evidence, BoundaryDecision] | None:
        """Decides a boundary; the cut, its evidence and the decision. None where it is a repetition."""
        evidence = self.evidence(opened)
        other = replace(
            opened,
            rules=self.overlay.text(opened.rules),
            selection_digest=evidence.selection_digest,
        )
        self.take(other)
        if self.pool.boundary is not other or self.pool.cut is None:
            return None
        cut = self.pool.cut
        decision = decide_boundary(cut, other, evidence, opened.generation)
        for event in decision.events():
            self.take(event)
        return cut, evidence, decision


class _Open(NamedTuple):
    """A boundary on its way, on both sides."""

    event: BoundaryOpened
    recorded_cut: PoolState
    cut: PoolState
    evidence: Evidence
    decision: BoundaryDecision


class _WhatIf:
    """Walks `rods.pool`: what was recorded on one side, what the other rules make of the same facts on the other."""

    def __init__(self, source: LogSource, overlay: Overlay, to_epoch: int | None) -> None:
        self.source, self.overlay, self.to_epoch = source, overlay, to_epoch
        self.other = _Other(source, overlay)
        self.sealed = SealedPass(source, to_epoch)
        self.pool = PoolState()
        self.last: dict[str, int] = {}
        self.seeds: set[str] = set()
        self.injected: list[TaskInjected] = []
        self.retired: list[TaskRetired] = []
        self.open: _Open | None = None

    def epochs(self) -> Iterator[EpochChanges]:
        for _, _, event in events(self.source, Topic.POOL, 0) if self.source.partitions(Topic.POOL) else ():
            if event is None:
                continue
            before = self.pool
            self.pool = evolve(before, before.next_offset, event)
            yield from self._take(event, before)
            if self.to_epoch is not None and self.pool.epoch >= self.to_epoch:
                return

    def _take(self, event: Any, before: PoolState) -> Iterator[EpochChanges]:
        match event:
            case BoundaryOpened():
                if self.pool.boundary is event:
                    self._opened(event)
            case TaskInjected():
                if self.pool.members.keys() - before.members.keys():
                    self.injected.append(event)
            case TaskRetired():
                if before.members.keys() - self.pool.members.keys():
                    self.retired.append(event)
            case PoolMaterialized():
                if self.pool.materialized is event and self.open is not None:
                    yield self._closed(self.open, event)
            case TaskProbed():
                pass
            case VariantVerified() | SeedSettled():
                self.other.advance(event.step)
                if event.seed in self.other.seeds:
                    self.other.take(event)
            case _:
                self.other.take(event)

    def _opened(self, event: BoundaryOpened) -> None:
        if event.epoch and not (self.other.advance(event.last_step) and self.sealed.advance(event.last_step)):
            raise AuditError(f"the log lacks rollouts or seals of epoch {event.epoch}, so nothing can be decided anew")
        closed = self.other.close(event)
        if closed is None or self.pool.cut is None:
            raise AuditError(f"the boundary of epoch {event.epoch} does not follow the one before")
        self.injected, self.retired = [], []
        self.open = _Open(event, self.pool.cut, *closed)

    def _closed(self, opened: _Open, materialized: PoolMaterialized) -> EpochChanges:
        event = opened.event
        evidence = self.sealed.log.evidence(event.epoch, event.last_step)
        rules = Rules.parse(event.rules)
        changes = EpochChanges(
            event.epoch, digest=opened.decision.materialized.digest, recorded_digest=materialized.digest
        )
        for step in self._steps(event.epoch):
            self._compare_step(changes, step, opened.recorded_cut, rules)
        recorded = Decided(rules, opened.recorded_cut, evidence, self.injected, self.retired, materialized, self.seeds)
        other = Decided(
            Rules.parse(self.overlay.text(event.rules)),
            opened.cut,
            opened.evidence,
            opened.decision.injected,
            opened.decision.retired,
            opened.decision.materialized,
            self.other.seeds.keys(),
        )
        compare_boundaries(changes, recorded, other)
        self.sealed.log.forget_before(event.epoch, event.last_seed_step)
        return changes

    def _steps(self, epoch: int) -> list[int]:
        return sorted(step for step, sealed in self.sealed.log.steps.items() if sealed.epoch == epoch and epoch)

    def _compare_step(self, changes: EpochChanges, step: int, pool: PoolState, rules: Rules) -> None:
        if step not in self.sealed.log.selections:
            return
        groups = {g.task: g for g in self.sealed.log.steps[step].groups() if g.purpose == Purpose.TRAIN}
        seeds = self.sealed.log.selections[step].seeds
        recorded = StepSide(rules, pool, groups, dict(self.last), seeds)
        compare_step(changes, step, recorded, self.other.sides.pop(step))
        self.last |= {seed.task: step for seed in seeds}
        self.seeds |= {seed.seed for seed in seeds}


def _rejudged(source: LogSource, partition: int, overlay: Overlay) -> Iterator[PartitionSealed]:
    """The complete seals of a partition's barriers under other rules."""
    state = MeasureState(partition)
    for offset, _, event in events(source, Topic.ROLLOUTS, partition):
        if event is None:
            state = skip(state, offset)
            continue
        other = replace(event, rules=overlay.text(event.rules)) if isinstance(event, BarrierReached) else event
        try:
            evolved = measure(state, offset, other)
        except StreamError as error:
            raise AuditError(str(error)) from error
        state = evolved.state
        if evolved.seals:
            yield join_chunks(evolved.seals)
