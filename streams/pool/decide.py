"""What an epoch's boundary decides: a pure function of the cut, its evidence and the rules (DESIGN sections 3 and 4).

In this order, each step seeing the one before:
1. retire: what an operator banned; variants whose first measurement is below burn-in; members whose mean stayed below
   drift_low or above drift_high for `patience` visits. Only a task measured in this epoch can retire on evidence.
2. return: retired tasks whose probe was in the boundary zone.
3. inject: queued variants, first selected first, up to inject_share of the active pool (returns count) and p_max.
4. prune: generated members over p_max, lowest phi first; those not yet measured are spared.
Originals are protected from 1 and 4 unless the rules say otherwise; pinned tasks always are.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from schemas.identity import content_digest, digest
from schemas.pool import BoundaryOpened, PoolMaterialized, RetirementRule, TaskInjected, TaskProbed, TaskRetired
from schemas.rollouts import Purpose
from schemas.rules import Rules
from schemas.seals import SealedGroup, TaskState
from streams.exact import mean_of, phi_of, text_of
from streams.pool.evidence import Evidence
from streams.pool.state import Candidate, Member, PoolState, Retired


@dataclass(frozen=True, slots=True)
class BoundaryDecision:
    """A boundary's events in the order they are written; `materialized` is the last."""

    probed: tuple[TaskProbed, ...]
    retired: tuple[TaskRetired, ...]
    injected: tuple[TaskInjected, ...]
    materialized: PoolMaterialized

    def events(self) -> tuple[Any, ...]:
        return (*self.probed, *self.retired, *self.injected, self.materialized)


def decide_boundary(cut: PoolState, opened: BoundaryOpened, evidence: Evidence, generation: int) -> BoundaryDecision:
    """The decisions of the boundary that `opened` fixes. `cut` is the state just before it.

    Raises ValueError where the evidence is not the one the boundary names.
    """
    if evidence.epoch != opened.epoch or evidence.selection_digest != opened.selection_digest:
        raise ValueError(f"the seals of epoch {opened.epoch} are not those its boundary names")
    return _Boundary(cut, opened, evidence, generation).decide()


class _Boundary:
    """The working set of one boundary: members and queue as they change from step to step."""

    def __init__(self, cut: PoolState, opened: BoundaryOpened, evidence: Evidence, generation: int) -> None:
        self.cut = cut
        self.epoch = opened.epoch
        self.generation = generation
        self.rules = Rules.parse(opened.rules)
        self.rules_text = opened.rules
        self.evidence = evidence
        self.members: dict[str, Member] = dict(cut.members)
        self.gone: dict[str, Retired] = dict(cut.retired)
        self.queue = queue_of(cut, opened.last_seed_step)
        self.retired: list[TaskRetired] = []
        self.injected: list[TaskInjected] = []

    def decide(self) -> BoundaryDecision:
        for task in sorted(self.cut.members):
            rule = self._rule_against(self.members[task])
            if rule is not None:
                self._retire(task, rule)
        active = len(self.members)
        probed = self._probes()
        self._inject(floor(Fraction(self.rules.pool.inject_share) * active), probed)
        self._prune()
        return BoundaryDecision(tuple(probed), tuple(self.retired), tuple(self.injected), self._materialized())

    def _rule_against(self, member: Member) -> RetirementRule | None:
        if member.task in self.cut.banned:
            return RetirementRule.OPERATOR
        if not self.rules.pool.retire or not self._may_retire(member):
            return None
        state, group = self.evidence.states.get(member.task), self.evidence.groups.get(member.task)
        if state is None or group is None or not is_live(group):
            return None
        if not member.original and state.visits == 1 and mean_of(state.window) < Fraction(self.rules.pool.burn_in):
            return RetirementRule.BURN_IN
        if state.low_streak >= self.rules.pool.patience:
            return RetirementRule.DRIFT_LOW
        if state.high_streak >= self.rules.pool.patience:
            return RetirementRule.DRIFT_HIGH
        return None

    def _may_retire(self, member: Member) -> bool:
        protected = member.original and self.rules.pool.protect_originals
        return not protected and member.task not in self.cut.pinned

    def _retire(self, task: str, rule: RetirementRule) -> None:
        member, state = self.members.pop(task), self.evidence.states.get(task)
        self.gone[task] = Retired(task, rule, self.epoch, self.epoch, member.original, member.seed)
        self.retired.append(
            TaskRetired(
                generation=self.generation,
                epoch=self.epoch,
                task=task,
                rule=rule,
                mean=_mean_text(state),
                phi=_phi_text(state),
                visits=state.visits if state else 0,
                evidence=tuple(group.group for group in state.window) if state else (),
            )
        )

    def _probes(self) -> list[TaskProbed]:
        probed = []
        for task in sorted(self.evidence.groups):
            group = self.evidence.groups[task]
            if group.purpose == Purpose.PROBE and task in self.gone:
                state = self.evidence.states.get(task)
                probed.append(
                    TaskProbed(self.generation, self.epoch, task, group.zone, _mean_text(state), group.boundary)
                )
                was = self.gone[task]
                self.gone[task] = Retired(task, was.rule, was.since, self.epoch, was.original, was.seed)
        return probed

    def _inject(self, room: int, probed: Iterable[TaskProbed]) -> None:
        room = min(room, max(0, self.rules.pool.p_max - self._generated()))
        for probe in probed:
            if room > 0 and probe.boundary and probe.task not in self.cut.banned:
                back = self.gone.pop(probe.task)
                self._admit(probe.task, back.seed, back.original, returned=True)
                room -= 1
        known = {content_digest(self.cut.definitions[task]) for task in (*self.cut.members, *self.cut.retired)}
        kept: list[Candidate] = []
        for candidate in self.queue:
            if candidate.content in known or candidate.task in self.cut.banned:
                continue
            known.add(candidate.content)
            if room > 0:
                self._admit(candidate.task, candidate.seed, original=False, returned=False)
                room -= 1
            else:
                kept.append(candidate)
        self.queue = kept

    def _admit(self, task: str, seed: str, original: bool, returned: bool) -> None:
        self.members[task] = Member(task, original, seed, self.epoch)
        self.injected.append(TaskInjected(self.generation, self.epoch, task, seed, returned))

    def _prune(self) -> None:
        over = self._generated() - self.rules.pool.p_max
        if over <= 0 or not self.rules.pool.retire:
            return
        measured = [
            (phi_of(mean_of(state.window)), member.task)
            for member in self.members.values()
            if not member.original
            and member.task not in self.cut.pinned
            and (state := self.evidence.states.get(member.task)) is not None
            and state.window
        ]
        for _, task in sorted(measured)[:over]:
            self._retire(task, RetirementRule.PRUNING)

    def _generated(self) -> int:
        return sum(not member.original for member in self.members.values())

    def _materialized(self) -> PoolMaterialized:
        members = tuple(sorted(self.members))
        queue = tuple(candidate.task for candidate in self.queue)
        content = {
            "epoch": self.epoch,
            "members": [[task, self.members[task].original, self._streaks(task)] for task in members],
            "queue": list(queue),
            "retired": [[g.task, g.rule, g.since, g.probed] for g in sorted(self.gone.values(), key=lambda g: g.task)],
            "rules": self.rules_text,
            "previous": self.cut.digest,
        }
        return PoolMaterialized(
            generation=self.generation,
            epoch=self.epoch,
            version=self.cut.version + 1,
            digest=digest(content),
            previous_digest=self.cut.digest,
            members=members,
            queue=queue,
            injected=len(self.injected),
            retired=len(self.retired),
            offsets={},
        )

    def _streaks(self, task: str) -> list[int]:
        state = self.evidence.states.get(task)
        return [state.visits, state.low_streak, state.high_streak] if state else [0, 0, 0]


def queue_of(cut: PoolState, last_seed_step: int) -> list[Candidate]:
    """The candidates a boundary may inject, in order: those of the seeds it includes. All these seeds are settled, so
    the list does not depend on how fast synthesis was."""
    included = [candidate for candidate in cut.candidates.values() if candidate.step <= last_seed_step]
    return sorted(included, key=lambda candidate: candidate.order)


def probes_of(state: PoolState, rules: Rules) -> list[str]:
    """The retired tasks the next epoch probes: those probed longest ago, ties by task id."""
    waiting = [gone for gone in state.retired.values() if gone.task not in state.banned]
    waiting.sort(key=lambda gone: (gone.probed, gone.task))
    return [gone.task for gone in waiting[: rules.pool.probes_per_epoch]]


def is_live(group: SealedGroup) -> bool:
    """Whether a group has at least one attempt with a reward."""
    return any(passed is not None for passed in group.passed)


def _mean_text(state: TaskState | None) -> str:
    return text_of(mean_of(state.window)) if state and state.window else ""


def _phi_text(state: TaskState | None) -> str:
    return text_of(phi_of(mean_of(state.window))) if state and state.window else ""
