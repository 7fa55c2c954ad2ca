"""What an epoch's boundary decides: a pure function of the cut, its evidence and the rules.

See docs/design.md, sections 3 and 4. In this order, each step seeing the one before:
1. retire: what an operator banned or dismissed; of the tasks measured in this epoch, variants whose first measurement
   is below burn-in, and members whose mean stayed below drift_low or above drift_high for `patience` visits.
2. return: retired tasks whose probe was in the boundary zone.
3. inject: queued variants, first selected first, up to inject_share of the active pool (returns count). None is of a
   seed that no selection names, or repeats the content of a task that is or was in the pool, waits before it, or is
   held out.
4. prune: generated members over p_max, lowest phi first. Pinned ones and those that came in at this boundary or were
   never measured stay; 2 and 3 bring in only what pruning can make room for, so that p_max holds after every boundary.
Originals are protected from retirement unless the rules say otherwise; pinned tasks always are, but for an operator's
later order.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import compress
from math import floor
from operator import attrgetter, not_
from typing import Any

from schemas.envelope import MAX_REMEMBERED
from schemas.pool import BoundaryOpened, PoolMaterialized, RetirementRule, TaskInjected, TaskProbed, TaskRetired
from schemas.rollouts import Purpose
from schemas.rules import Rules, canonical_json
from schemas.seals import SealedGroup, TaskState, Zone
from streams.measure.exact import mean_of, phi_of, text_of
from streams.pool.evidence import Evidence
from streams.pool.state import Candidate, Member, PoolState, Retired

_ORIGINAL = attrgetter("original")


@dataclass(frozen=True, slots=True)
class BoundaryDecision:
    """A boundary's events in the order they are written; `materialized` is the last. unselected: candidates that were
    passed over for good, since no selection names their seed."""

    probed: tuple[TaskProbed, ...]
    retired: tuple[TaskRetired, ...]
    injected: tuple[TaskInjected, ...]
    materialized: PoolMaterialized
    unselected: tuple[str, ...] = ()

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
        self.generated = set(compress(self.members, map(not_, map(_ORIGINAL, self.members.values()))))
        self.gone: dict[str, Retired] = dict(cut.retired)
        self.queue, self.unselected = queue_of(cut, opened.last_seed_step, evidence.selected)
        self.retired: list[TaskRetired] = []
        self.injected: list[TaskInjected] = []
        self.unwanted = cut.banned | cut.dismissed

    def decide(self) -> BoundaryDecision:
        for task in sorted(self.members.keys() & (self.unwanted | self.evidence.groups.keys())):
            rule = self._rule_against(self.members[task])
            if rule is not None:
                self._retire(task, rule)
        share = floor(Fraction(self.rules.pool.inject_share) * len(self.members))
        probed = self._probes()
        self._inject(self._return(share, probed))
        self._prune()
        decided = tuple(probed), tuple(self.retired), tuple(self.injected), self._materialized()
        return BoundaryDecision(*decided, unselected=tuple(self.unselected))

    def _rule_against(self, member: Member) -> RetirementRule | None:
        if member.task in self.unwanted:
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
        self.generated.discard(task)
        self.gone[task] = Retired(task, rule.value, self.epoch, self.epoch, member.original, member.seed)
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
        """What the epoch's probes showed. One without a live attempt counts as run: the next one has its turn."""
        probed = []
        for task in sorted(self.evidence.groups):
            group = self.evidence.groups[task]
            if group.purpose != Purpose.PROBE or task not in self.gone:
                continue
            live = is_live(group)
            zone, mean = (group.zone, _mean_text(group.state)) if live else (Zone.NONE.value, "")
            probed.append(TaskProbed(self.generation, self.epoch, task, zone, mean, live and group.boundary))
            self.gone[task] = replace(self.gone[task], probed=self.epoch)
        return probed

    def _return(self, share: int, probed: Iterable[TaskProbed]) -> int:
        """Takes back probed tasks; returns what is left of the share."""
        for probe in probed:
            fits = self.gone[probe.task].original or self._room() > 0
            if share > 0 and fits and probe.boundary and probe.task not in self.unwanted:
                back = self.gone.pop(probe.task)
                self._admit(probe.task, back.seed, back.original, returned=True)
                share -= 1
        return share

    def _inject(self, share: int) -> None:
        room = min(share, self._room())
        cut = self.cut
        known = {cut.contents[task] for task in (*cut.members, *cut.retired, *cut.heldout)} if self.queue else set()
        kept: list[Candidate] = []
        for candidate in self.queue:
            if candidate.content in known or candidate.task in self.unwanted:
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
        if not original:
            self.generated.add(task)
        self.injected.append(TaskInjected(self.generation, self.epoch, task, seed, returned))

    def _room(self) -> int:
        """Generated tasks that may still come in: what p_max leaves beside those that pruning cannot take."""
        return max(0, self.rules.pool.p_max - len(self.generated) + len(self._prunable()))

    def _prunable(self) -> list[tuple[Fraction, str]]:
        """Generated members that may be pruned, lowest phi first, ties by task id."""
        if not self.rules.pool.retire:
            return []
        measured = [
            (phi_of(mean_of(state.window)), task)
            for task in self.generated
            if self.members[task].since < self.epoch
            and task not in self.cut.pinned
            and (state := self.evidence.states.get(task)) is not None
            and state.window
        ]
        return sorted(measured)

    def _prune(self) -> None:
        over = len(self.generated) - self.rules.pool.p_max
        for _, task in self._prunable()[: max(0, over)]:
            self._retire(task, RetirementRule.PRUNING)

    def _materialized(self) -> PoolMaterialized:
        members = tuple(sorted(self.members))
        queue = tuple(candidate.task for candidate in self.queue)
        return PoolMaterialized(
            generation=self.generation,
            epoch=self.epoch,
            version=self.cut.version + 1,
            digest=self._digest(members, queue),
            previous_digest=self.cut.digest,
            members=members,
            queue=queue,
            injected=len(self.injected),
            retired=len(self.retired),
            offsets={},
        )

    def _digest(self, members: tuple[str, ...], queue: Sequence[str]) -> str:
        """sha256, hexadecimal, of the pool as canonical JSON."""
        content = {
            "previous": self.cut.digest,
            "queue": queue,
            "retired": [[g.task, g.rule, g.since, g.probed] for g in sorted(self.gone.values(), key=lambda g: g.task)],
            "rules": self.rules_text,
        }
        pool = hashlib.sha256(f'{{"epoch":{self.epoch},"members":['.encode())
        pool.update(",".join(map(self._row, members)).encode())
        pool.update(b"]," + canonical_json(content)[1:].encode())
        return pool.hexdigest()

    def _row(self, task: str) -> str:
        """What the digest covers of a member, as canonical JSON: id, content, whether it is an original, then visits
        and streaks."""
        state = self.evidence.states.get(task)
        counts = f"{state.visits},{state.low_streak},{state.high_streak}" if state else "0,0,0"
        return f"{_row_head(task, self.cut.contents[task], task not in self.generated)}[{counts}]]"


@lru_cache(maxsize=MAX_REMEMBERED)
def _row_head(task: str, content: str, original: bool) -> str:
    return canonical_json([task, content, original, []])[:-3]


def queue_of(
    cut: PoolState, last_seed_step: int, selected: Mapping[str, int] | None
) -> tuple[list[Candidate], list[str]]:
    """The candidates a boundary may inject, in order: those of the seeds it includes. All these seeds are settled, so
    the list does not depend on how fast synthesis was. And the tasks of those that claim a seed which no step it
    includes selected, in order too: whoever may write to `rods.pool` can make them up."""
    included = [candidate for candidate in cut.candidates.values() if candidate.step <= last_seed_step]
    included.sort(key=lambda candidate: candidate.order)
    if selected is None:
        return included, []
    known = [candidate for candidate in included if selected.get(candidate.seed, last_seed_step + 1) <= last_seed_step]
    kept = {candidate.task for candidate in known}
    return known, [candidate.task for candidate in included if candidate.task not in kept]


def probes_of(state: PoolState, rules: Rules) -> list[str]:
    """The retired tasks the next epoch probes: those probed longest ago, ties by task id."""
    waiting = [gone for gone in state.retired.values() if gone.task not in state.banned | state.dismissed]
    waiting.sort(key=lambda gone: (gone.probed, gone.task))
    return [gone.task for gone in waiting[: rules.pool.probes_per_epoch]]


def is_live(group: SealedGroup) -> bool:
    """Whether a group has at least one attempt with a reward."""
    return any(passed is not None for passed in group.passed)


def _mean_text(state: TaskState | None) -> str:
    return text_of(mean_of(state.window)) if state and state.window else ""


def _phi_text(state: TaskState | None) -> str:
    return text_of(phi_of(mean_of(state.window))) if state and state.window else ""
