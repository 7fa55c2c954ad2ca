"""Builders of what a boundary decides on, and the plain way to fold a pool's log."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schemas.epochs import LearnerStarted
from schemas.identity import content_digest, seed_id, variant_id
from schemas.pool import (
    BoundaryOpened,
    Decision,
    OperatorDecided,
    SeedSettled,
    Settlement,
    TaskRegistered,
    VariantVerified,
)
from schemas.rollouts import Purpose
from schemas.rules import PoolRules, Rules
from schemas.seals import PartitionSealed, SealedGroup, SelectedSeed, SelectionClosed, TaskState, WindowGroup
from schemas.task import TaskDefinition, Turn
from streams.measure.seal import sealed
from streams.measure.zones import is_boundary, zone_of
from streams.pool.decide import BoundaryDecision, decide_boundary
from streams.pool.evidence import Evidence
from streams.pool.fold import evolve
from streams.pool.state import PoolState

SLOTS, TURNS = 4, 5
"""So that a mean is passed / 20 where `passed` is a group's sum."""


def task(name: str, content: str = "", parent: str | None = None) -> TaskDefinition:
    """A task; equal content, by default the name, makes equal tasks."""
    state = f'{{"content":"{content or name}"}}'
    return TaskDefinition(name, "workbench", "base", "s", ("Files",), state, (Turn(("do",), ("f()",)),), parent)


def rules(**pool: Any) -> Rules:
    return Rules(pool=PoolRules(**pool))


def registered(name: str, task_set: str = "pool", generation: int = 1, **changes: Any) -> TaskRegistered:
    return TaskRegistered(generation, task(name, **changes), task_set)


def seed(of: str, step: int = 1, epoch: int = 1) -> str:
    return seed_id(1, epoch, step, of)


def variant(of: str, content: str, step: int = 1, epoch: int = 1, rank: int = 0) -> VariantVerified:
    """A variant of a task, from its seed of a step."""
    made = task(variant_id(seed(of, step, epoch), content), content, parent=of)
    return VariantVerified(seed(of, step, epoch), epoch, step, rank, made, content_digest(made))


def settled(
    of: str, step: int = 1, epoch: int = 1, outcome: Settlement = Settlement.DONE, generation: int = 0
) -> SeedSettled:
    return SeedSettled(generation, seed(of, step, epoch), epoch, step, outcome, 1)


def opened(
    epoch: int, chosen: Rules, last_seed_step: int = 99, generation: int = 1, last_step: int | None = None
) -> BoundaryOpened:
    step = epoch if last_step is None else last_step
    digest = f"digest-{epoch}" if epoch else ""
    return BoundaryOpened(generation, epoch, step, last_seed_step, digest, chosen.canonical())


def started(generation: int) -> LearnerStarted:
    return LearnerStarted(generation, f"nonce-{generation}")


def ordered(name: str, decision: Decision | str, decision_id: str = "d1") -> OperatorDecided:
    return OperatorDecided(decision_id, name, str(decision), "ada", "because")


def folded(events: Iterable[Any], state: PoolState | None = None) -> PoolState:
    state = state or PoolState()
    for event in events:
        state = evolve(state, state.next_offset, event)
    return state


def group(
    name: str,
    passed: int | None,
    *,
    purpose: Purpose = Purpose.TRAIN,
    visits: int = 2,
    low: int = 0,
    high: int = 0,
    chosen: Rules | None = None,
) -> SealedGroup:
    """A group of 4 slots of 5 turns that passed so many turns together, as evenly as can be; None: none is live."""
    slots = [None] * SLOTS if passed is None else [passed // SLOTS + (n < passed % SLOTS) for n in range(SLOTS)]
    state = TaskState(name, "base", (window(name, slots),) if passed is not None else (), visits, low, high)
    zone = zone_of(state.window, chosen or Rules())
    return SealedGroup(
        group=f"g-{name}",
        task=name,
        purpose=purpose,
        category="base",
        execution="e" if passed is not None else "",
        turns_total=TURNS,
        passed=tuple(slots),
        reasons=("",) * SLOTS,
        policy_versions=(0,) * SLOTS,
        trajectories=("",) * SLOTS,
        zone=zone,
        boundary=passed is not None and is_boundary(state.window, zone, chosen or Rules()),
        state=state,
    )


def window(name: str, slots: Sequence[int | None]) -> WindowGroup:
    live = [turns for turns in slots if turns is not None]
    return WindowGroup(f"g-{name}", len(live), sum(live), sum(turns * turns for turns in live), TURNS)


def evidence(
    epoch: int,
    *groups: SealedGroup,
    before: Iterable[TaskState] = (),
    selected: Mapping[str, int] | None = None,
) -> Evidence:
    """The epoch's groups; before: the states of tasks that were not measured in it. selected: seeds to steps; None:
    whatever the pool's log claims."""
    states = {state.task: state for state in before} | {group.task: group.state for group in groups}
    named = f"digest-{epoch}" if epoch else ""
    return Evidence(epoch, named, {group.task: group for group in groups}, states, selected)


def decided(
    state: PoolState,
    epoch: int,
    chosen: Rules,
    *groups: SealedGroup,
    before: Iterable[TaskState] = (),
    last_seed_step: int = 99,
    selected: Mapping[str, int] | None = None,
) -> BoundaryDecision:
    """The decision of a boundary that the newest learner opens on the state."""
    generation = max(1, state.generation)
    state = folded([opened(epoch, chosen, last_seed_step, generation)], state)
    assert state.cut is not None and state.boundary is not None
    found = evidence(epoch, *groups, before=before, selected=selected)
    return decide_boundary(state.cut, state.boundary, found, generation)


def closed(
    state: PoolState, epoch: int, chosen: Rules, *groups: SealedGroup, last_seed_step: int = 99
) -> tuple[PoolState, BoundaryDecision]:
    """The pool after a boundary, and its decision."""
    decision = decided(state, epoch, chosen, *groups, last_seed_step=last_seed_step)
    marker = opened(epoch, chosen, last_seed_step, decision.materialized.generation)
    return folded([marker, *decision.events()], state), decision


def first_pool(chosen: Rules, *names: str, others: Iterable[Any] = ()) -> PoolState:
    """The pool of epoch 0 over originals."""
    state, _ = closed(folded([*map(registered, names), *others]), 0, chosen)
    return state


def seal(
    step: int, partition: int = 0, *, groups: Sequence[SealedGroup] = (), last: bool = False, epoch: int = 1, n: int = 2
) -> tuple[PartitionSealed, ...]:
    """The chunks of a seal; the last of an epoch carries the states of its own groups."""
    states = tuple(group.state for group in groups) if last else ()
    whole = PartitionSealed(
        epoch, step, partition, n, 0, 1, 0, last, Rules().canonical(), 0, "", tuple(groups), states, 0, 0, 0
    )
    return sealed(whole)


def selection(step: int, *of: str, epoch: int = 1, digest: str = "") -> SelectionClosed:
    seeds = tuple(SelectedSeed(seed(name, step, epoch), name, "base", "1/1", "1/4", n, ()) for n, name in enumerate(of))
    return SelectionClosed(epoch, step, seeds, 2, 0, digest or f"selected-{step}")
