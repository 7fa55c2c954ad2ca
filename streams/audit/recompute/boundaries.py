"""Boundaries recomputed: the pool's fold over `rods.pool`, and at each cut the rules that decided it, over the seals.

A boundary may be written twice, by a learner that died and the one after it; what an older generation wrote after that
is ignored, as the fold ignores it. A decision is compared by what it decides, not by who wrote it and when.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from eventlog.fence import superseded
from schemas.identity import content_digest, variant_id
from schemas.pool import (
    BoundaryOpened,
    PoolMaterialized,
    SeedSettled,
    TaskInjected,
    TaskProbed,
    TaskRetired,
    VariantVerified,
)
from schemas.topics import Topic
from streams.audit.compare.divergence import ABSENT, UNDECIDED, Divergence, Stage, difference, shown
from streams.audit.load.source import LogSource, Placed, events
from streams.audit.recompute.select import SealedPass
from streams.audit.recompute.settlements import Settlements
from streams.measure.barrier import parsed_rules
from streams.pool.decide import BoundaryDecision, decide_boundary
from streams.pool.fold import evolve, skip
from streams.pool.state import PoolState

Key = tuple[str, str]
Decided = TaskProbed | TaskRetired | TaskInjected | PoolMaterialized


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary as the log records it, and the digest that is recomputed (None where its evidence is not in the log).
    Without the members: a log of many epochs has as many pools."""

    epoch: int
    last_step: int
    version: int
    digest: str
    recomputed: str | None


@dataclass(slots=True)
class BoundaryPass:
    """Walks `rods.pool`, and takes the seals along. observe: sees every settlement that counts."""

    source: LogSource
    sealed: SealedPass
    to_epoch: int | None = None
    observe: Callable[[SeedSettled], None] | None = None
    divergences: list[Divergence] = field(default_factory=list)
    state: PoolState = field(default_factory=PoolState)
    decision: BoundaryDecision | None = None
    awaited: dict[Key, Decided] = field(default_factory=dict)
    last_seen: BoundaryOpened | None = None
    settlements: Settlements = field(init=False)

    def __post_init__(self) -> None:
        self.settlements = Settlements(self.source)

    def boundaries(self) -> Iterator[Boundary]:
        """Each boundary that the log closes, in order."""
        if not self.source.partitions(Topic.POOL):
            return
        for placed in events(self.source, Topic.POOL, 0):
            if placed.event is None:
                self.state = skip(self.state, placed.offset)
                continue
            if self.to_epoch is not None and self.state.epoch >= self.to_epoch:
                return
            yield from self._take(placed)

    def _take(self, placed: Placed) -> Iterator[Boundary]:
        before, event = self.state, placed.event
        self.state = evolve(before, placed.offset, event)
        if superseded(event, before.generation):
            return
        if self._outside(before, event):
            what = f"{event.KIND} of epoch {event.epoch}, which no boundary is open for"
            self._add(placed.offset, self.state.epoch + 1, 0, what, "epoch", str(event.epoch), str(before.epoch + 1))
            return
        match event:
            case SeedSettled() if self.state.settled is not before.settled:
                self.settlements.settled(placed.offset, event)
                if self.observe is not None:
                    self.observe(event)
            case VariantVerified():
                self.settlements.variant(event)
                self._variant(placed.offset, event)
            case BoundaryOpened() if self.state.boundary is event:
                self._opened(placed.offset, event)
            case TaskProbed() | TaskRetired() | TaskInjected():
                if before.boundary is not None and before.boundary.epoch == event.epoch:
                    self._compare(placed, event, before)
            case PoolMaterialized() if self.state.materialized is event:
                yield self._materialized(placed, event, before)

    def _outside(self, before: PoolState, event: Any) -> bool:
        """Whether a learner's event is of a boundary that neither is open nor could open here. Of one that is closed,
        it is a repetition."""
        if isinstance(event, BoundaryOpened):
            opens = self.state.boundary is event
        elif isinstance(event, TaskProbed | TaskRetired | TaskInjected | PoolMaterialized):
            opens = False
        else:
            return False
        is_open = before.boundary is not None and before.boundary.epoch == event.epoch
        return event.epoch > before.epoch and not opens and not is_open

    def _variant(self, offset: int, event: VariantVerified) -> None:
        """A variant's id and content follow from its definition and its seed."""
        content = content_digest(event.definition)
        for path, recorded, recomputed in (
            ("content", event.content, content),
            ("definition.task", event.definition.task, variant_id(event.seed, content)),
        ):
            if recorded != recomputed:
                self._add(
                    offset,
                    event.epoch,
                    event.step,
                    f"the variant {event.definition.task} of seed {event.seed}",
                    path,
                    shown(recorded),
                    shown(recomputed),
                    stage=Stage.VARIANT,
                    task=event.definition.task,
                )
                return

    def _opened(self, offset: int, event: BoundaryOpened) -> None:
        self.decision, self.awaited, self.last_seen = None, {}, event
        what = f"the boundary of epoch {event.epoch}"
        if event.epoch and not self.sealed.advance(event.last_step):
            self._add(offset, event.epoch, event.last_step, what, "last_step", str(event.last_step), ABSENT)
            return
        rules = parsed_rules(event.rules)
        if rules is None:
            self._add(offset, event.epoch, event.last_step, what, "rules", shown(event.rules), "rules that parse")
            return
        included = max(0, event.last_step - rules.synthesis.lag_steps)
        if event.last_seed_step != included:
            self._add(
                offset, event.epoch, event.last_step, what, "last_seed_step", str(event.last_seed_step), str(included)
            )
        self._decide(offset, event, what)
        self.sealed.log.forget_before(event.epoch, event.last_seed_step)

    def _decide(self, offset: int, event: BoundaryOpened, what: str) -> None:
        assert self.state.cut is not None
        try:
            evidence = self.sealed.log.evidence(event.epoch, event.last_step)
            self.decision = decide_boundary(self.state.cut, event, evidence, event.generation)
        except ValueError as error:
            selection = self.sealed.log.selections.get(event.last_step)
            recomputed = shown(selection.digest) if selection else str(error)
            self._add(
                offset,
                event.epoch,
                event.last_step,
                what,
                "selection_digest",
                shown(event.selection_digest),
                recomputed,
            )
            return
        self.awaited = {_key(decided): decided for decided in self.decision.events()}

    def _compare(self, placed: Placed, event: Decided, before: PoolState) -> None:
        """A recorded decision against the recomputed one of its kind and task. A second one changes nothing."""
        if self.decision is None:
            return
        decided = self._decided(_key(event))
        step = self.last_seen.last_step if self.last_seen else 0
        self.awaited.pop(_key(event), None)
        if decided is None:
            if self.state is not before and _changes(self.state, before):
                self._add_event(placed.offset, event, step, "", shown(_key(event)), ABSENT)
            return
        if _as_decided(event, decided):
            return
        found = difference(placed.value, decided, UNDECIDED)
        if found is not None:
            self._add_event(placed.offset, event, step, *found)

    def _decided(self, key: Key) -> Decided | None:
        assert self.decision is not None
        return next((event for event in self.decision.events() if _key(event) == key), None)

    def _materialized(self, placed: Placed, event: PoolMaterialized, before: PoolState) -> Boundary:
        self._compare(placed, event, before)
        step = self.last_seen.last_step if self.last_seen else 0
        for missing in self.awaited.values():
            self._add_event(placed.offset, missing, step, "", ABSENT, shown(_key(missing)))
        led_to = tuple(sorted(self.state.members))
        if self.decision is not None and led_to != event.members:
            self._add_event(placed.offset, event, step, "members", shown(event.members), shown(led_to))
        recomputed = self.decision.materialized.digest if self.decision else None
        self.decision, self.awaited = None, {}
        return Boundary(event.epoch, step, event.version, event.digest, recomputed)

    def _add_event(self, offset: int, event: Any, step: int, path: str, recorded: str, recomputed: str) -> None:
        task = getattr(event, "task", "")
        evidence = tuple(f"group {group}" for group in getattr(event, "evidence", ()))
        what = f"{event.KIND} of {task or 'the pool'} after epoch {event.epoch}"
        self._add(offset, event.epoch, step, what, path, recorded, recomputed, task=task, evidence=evidence)

    def _add(
        self,
        offset: int,
        epoch: int,
        step: int,
        what: str,
        path: str,
        recorded: str,
        recomputed: str,
        *,
        stage: Stage = Stage.POOL,
        task: str = "",
        evidence: tuple[str, ...] = (),
    ) -> None:
        place = self.source.place(Topic.POOL, 0, offset)
        self.divergences.append(
            Divergence(stage, epoch, step, place, what, path, recorded, recomputed, task=task, evidence=evidence)
        )


def _key(event: Decided) -> Key:
    return event.KIND, "" if isinstance(event, PoolMaterialized) else event.task


def _as_decided(recorded: Decided, decided: Decided) -> bool:
    """Whether a decoded event decides the same in every field. It spares encoding a pool of a hundred thousand."""
    undecided = {name: getattr(recorded, name) for name in UNDECIDED if hasattr(recorded, name)}
    return replace(decided, **undecided) == recorded


def _changes(after: PoolState, before: PoolState) -> bool:
    """Whether an event changed the pool beyond its place in the log."""
    return after.members != before.members or after.retired != before.retired
