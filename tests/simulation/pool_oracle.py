"""The pool by the same plain means as `oracle`: every boundary of `rods.pool` decided anew from its cut.

It shares the event types with the project, and the seals and selections with the oracle.
"""

import json
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any

from schemas.epochs import LearnerStarted
from schemas.pool import (
    BoundaryOpened,
    OperatorDecided,
    PoolMaterialized,
    SeedSettled,
    TaskInjected,
    TaskProbed,
    TaskRegistered,
    TaskRetired,
    VariantVerified,
)
from tests.simulation.oracle import Seal, Selection, Task, sha


@dataclass
class Pool:
    """members: task to (original, epoch it came in); waiting: task to (epoch, step, rank, task, seed); gone: task to
    [rule, since, probed, original]."""

    contents: dict[str, str] = field(default_factory=dict)
    heldout: set[str] = field(default_factory=set)
    members: dict[str, tuple[bool, int]] = field(default_factory=dict)
    waiting: dict[str, tuple[int, int, int, str, str]] = field(default_factory=dict)
    gone: dict[str, tuple[str, int, int, bool]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    orders: dict[str, str] = field(default_factory=dict)
    epoch: int = -1
    version: int = -1
    digest: str = ""

    def copy(self) -> "Pool":
        return Pool(
            dict(self.contents),
            set(self.heldout),
            dict(self.members),
            dict(self.waiting),
            dict(self.gone),
            set(self.settled),
            dict(self.orders),
            self.epoch,
            self.version,
            self.digest,
        )


@dataclass
class Boundary:
    """What a boundary decides, and the pool after it. written: the decisions that count, as the log has them."""

    opened: BoundaryOpened
    retired: dict[str, str]
    injected: dict[str, bool]
    probed: dict[str, bool]
    after: Pool
    queue: list[str]
    left: set[str] = field(default_factory=set)
    written: set[tuple[str, ...]] = field(default_factory=set)
    recorded: PoolMaterialized | None = None

    def decisions(self) -> set[tuple[str, ...]]:
        return (
            {("retired", task, rule) for task, rule in self.retired.items()}
            | {("injected", task, str(returned)) for task, returned in self.injected.items()}
            | {("probed", task, str(boundary)) for task, boundary in self.probed.items()}
        )


def boundaries_of(events: list[Any], seals: list[Seal], selections: list[Selection]) -> list[Boundary]:
    """The boundaries of `rods.pool`, decided anew from their cut."""
    state, generation = Pool(), 0
    boundaries: list[Boundary] = []
    current: Boundary | None = None
    done: set[str] = set()
    for event in events:
        if event is None:
            continue
        from_learner = hasattr(event, "generation") and not (isinstance(event, SeedSettled) and event.generation == 0)
        if from_learner and event.generation < generation:
            continue
        if isinstance(event, LearnerStarted):
            generation = event.generation
        elif isinstance(event, TaskRegistered) and event.definition.task not in state.contents:
            task = event.definition.task
            state.contents[task] = content_of(event.definition)
            if event.task_set == "heldout":
                state.heldout.add(task)
            else:
                state.members[task] = (True, 0)
        elif isinstance(event, VariantVerified):
            task = event.definition.task
            if task not in state.contents and event.seed not in state.settled:
                state.contents[task] = content_of(event.definition)
                state.waiting[task] = (event.epoch, event.step, event.rank, task, event.seed)
        elif isinstance(event, SeedSettled):
            state.settled.add(event.seed)
        elif isinstance(event, OperatorDecided) and event.decision_id not in done:
            done.add(event.decision_id)
            state.orders[event.task] = event.decision
        elif isinstance(event, BoundaryOpened) and current is None and event.epoch == state.epoch + 1:
            current = decide(state.copy(), event, seals, selections)
        elif current is not None and isinstance(event, TaskRetired | TaskInjected | TaskProbed | PoolMaterialized):
            if event.epoch != current.opened.epoch:
                continue
            if isinstance(event, TaskRetired):
                current.written.add(("retired", event.task, event.rule))
                if event.task in state.members and event.task not in current.left:
                    current.left.add(event.task)
                    if state.orders.get(event.task) == "retire":
                        del state.orders[event.task]
            elif isinstance(event, TaskInjected):
                current.written.add(("injected", event.task, str(event.returned)))
            elif isinstance(event, TaskProbed):
                current.written.add(("probed", event.task, str(event.boundary)))
            else:
                current.recorded = event
                settle(state, current)
                boundaries.append(current)
                current = None
    return boundaries


def settle(state: Pool, boundary: Boundary) -> None:
    """The decisions hold; what came in since the cut stays."""
    after, cut = boundary.after, boundary.opened.last_seed_step
    kept = {t: o for t, o in after.waiting.items() if t in boundary.queue or o[1] > cut}
    arrived = {t: o for t, o in state.waiting.items() if t not in after.contents}
    state.waiting = {**kept, **arrived}
    state.members, state.gone = dict(after.members), dict(after.gone)
    state.epoch, state.version, state.digest = after.epoch, after.version, after.digest


def content_of(definition: Any) -> str:
    turns = [
        {"requests": list(t.requests), "ground_truth": list(t.ground_truth), "withheld": list(t.withheld)}
        for t in definition.turns
    ]
    return sha(
        {
            "source": definition.source,
            "category": definition.category,
            "scenario": definition.scenario,
            "classes": list(definition.classes),
            "initial_state": definition.initial_state,
            "turns": turns,
        }
    )


def decide(cut: Pool, opened: BoundaryOpened, seals: list[Seal], selections: list[Selection]) -> Boundary:
    """Retire, return, inject, prune."""
    epoch, rules = opened.epoch, json.loads(opened.rules)
    limits = rules["pool"]
    of_epoch = [seal for seal in seals if seal.epoch == epoch and seal.step <= opened.last_step]
    groups = {group.task: group for seal in of_epoch for group in seal.groups}
    states = {task: state for seal in of_epoch if seal.step == opened.last_step for task, state in seal.states.items()}
    named = next((s.digest for s in selections if s.step == opened.last_step), "") if epoch else ""
    assert named == opened.selection_digest, f"the boundary of epoch {epoch} names seals that the log does not have"
    unwanted = {task for task, order in cut.orders.items() if order in ("ban", "retire")}
    pinned = {task for task, order in cut.orders.items() if order == "pin"}
    now, made = cut.copy(), Boundary(opened, {}, {}, {}, cut, [])

    def retire(task: str, rule: str) -> None:
        made.retired[task] = rule
        original, _ = now.members.pop(task)
        now.gone[task] = (rule, epoch, epoch, original)

    def admit(task: str, original: bool, returned: bool) -> None:
        made.injected[task] = returned
        now.members[task] = (original, epoch)

    def prunable() -> list[tuple[Fraction, str]]:
        if not limits["retire"]:
            return []
        return sorted(
            (states[task].phi(), task)
            for task, (original, since) in now.members.items()
            if not original and since < epoch and task not in pinned and task in states and states[task].window
        )

    def generated() -> int:
        return sum(not original for original, _ in now.members.values())

    def room() -> int:
        return max(0, int(limits["p_max"]) - generated() + len(prunable()))

    for task in sorted(cut.members):
        original = cut.members[task][0]
        if task in unwanted:
            retire(task, "operator")
            continue
        protected = task in pinned or (original and limits["protect_originals"])
        if not limits["retire"] or protected or task not in groups or not groups[task].live:
            continue
        state = states[task]
        if not original and state.visits == 1 and state.mean() < Fraction(limits["burn_in"]):
            retire(task, "burn_in")
        elif state.low >= limits["patience"]:
            retire(task, "drift_low")
        elif state.high >= limits["patience"]:
            retire(task, "drift_high")
    share = floor(Fraction(limits["inject_share"]) * len(now.members))
    probes = sorted(task for task, group in groups.items() if group.purpose == "probe" and task in now.gone)
    for task in probes:
        rule, since, _, original = now.gone[task]
        now.gone[task] = (rule, since, epoch, original)
        made.probed[task] = groups[task].live and groups[task].boundary
    for task in probes:
        original = now.gone[task][3]
        if share > 0 and made.probed[task] and task not in unwanted and (original or room() > 0):
            del now.gone[task]
            admit(task, original, returned=True)
            share -= 1
    space = min(share, room())
    known = {now.contents[task] for task in [*cut.members, *cut.gone, *cut.heldout]}
    order = sorted(place for place in cut.waiting.values() if place[1] <= opened.last_seed_step)
    selected = {seed[0] for s in selections if s.step <= opened.last_seed_step for seed in s.seeds}
    for *_, task, seed in order:
        if seed not in selected or cut.contents[task] in known or task in unwanted:
            continue
        known.add(cut.contents[task])
        if space > 0:
            admit(task, original=False, returned=False)
            space -= 1
        else:
            made.queue.append(task)
    for _, task in prunable()[: max(0, generated() - int(limits["p_max"]))]:
        retire(task, "pruning")
    now.epoch, now.version = epoch, cut.version + 1
    now.digest = pool_digest(now, states, made.queue, opened.rules, cut.digest)
    made.after = now
    return made


def pool_digest(pool: Pool, states: dict[str, Task], queue: list[str], rules: str, previous: str) -> str:
    members = []
    for task in sorted(pool.members):
        state = states.get(task, Task(""))
        members.append([task, pool.contents[task], pool.members[task][0], [state.visits, state.low, state.high]])
    gone = [[task, rule, since, probed] for task, (rule, since, probed, _) in sorted(pool.gone.items())]
    content = {
        "epoch": pool.epoch,
        "members": members,
        "queue": queue,
        "retired": gone,
        "rules": rules,
        "previous": previous,
    }
    return sha(content)
