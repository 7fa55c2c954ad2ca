"""A plain fold of the final log from offset 0, from the design's text alone (docs/design.md).

It shares the event types with the project and nothing else: no fold, no rule, no digest. It is slow and simple on
purpose: lists, fractions, one loop per topic.
"""

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from schemas.epochs import LearnerStarted
from schemas.rollouts import BarrierReached, RolloutFinished

Json = dict[str, Any]


def sha(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# Measure


@dataclass
class Task:
    """A task as its visits left it. window: (group, turns passed of the live slots, turns in total)."""

    category: str
    window: list[tuple[str, list[int], int]] = field(default_factory=list)
    visits: int = 0
    low: int = 0
    high: int = 0

    def progress(self) -> list[Fraction]:
        return [Fraction(turns, total) for _, passed, total in self.window for turns in passed]

    def mean(self) -> Fraction:
        values = self.progress()
        return sum(values, Fraction(0)) / len(values)

    def variance(self) -> Fraction:
        values, mean = self.progress(), self.mean()
        if len(values) < 2:
            return Fraction(0)
        return sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1)

    def phi(self) -> Fraction:
        return 4 * self.mean() * (1 - self.mean())

    def content(self, name: str) -> list[Any]:
        window = [[g, len(p), sum(p), sum(t * t for t in p), total] for g, p, total in self.window]
        return [name, self.category, window, self.visits, self.low, self.high]

    def copy(self) -> "Task":
        return Task(self.category, list(self.window), self.visits, self.low, self.high)


@dataclass
class Group:
    """A group as its barrier found it."""

    group: str
    task: str
    purpose: str
    category: str
    execution: str
    turns_total: int
    passed: list[int | None]
    reasons: list[str]
    zone: str
    boundary: bool
    state: Task

    @property
    def live(self) -> bool:
        return any(turns is not None for turns in self.passed)


@dataclass
class Seal:
    """What a barrier is answered with. counts: late, duplicate and refused since the one before."""

    epoch: int
    step: int
    partition: int
    partitions: int
    offset: int
    last_of_epoch: bool
    rules: str
    groups: list[Group]
    states: dict[str, Task]
    counts: tuple[int, int, int] = (0, 0, 0)

    def digest(self) -> str:
        parts: list[Any] = [
            ["seal", self.epoch, self.step, self.partition, self.partitions, self.last_of_epoch, self.rules]
        ]
        for g in self.groups:
            parts.append(["group", g.group, g.task, g.purpose, g.category, g.turns_total])
            parts.append([g.passed, g.reasons, g.zone, g.boundary, g.state.content(g.task)])
        parts += [["state", self.states[name].content(name)] for name in sorted(self.states)]
        text = "".join(json.dumps(part, sort_keys=True, separators=(",", ":")) + "\n" for part in parts)
        return hashlib.sha256(text.encode()).hexdigest()


def judge(slot: Any, total: int) -> tuple[int | None, str]:
    """None is not zero; what is impossible has failed."""
    sane = min(slot.tool_calls, slot.tokens, slot.latency, slot.policy_version) >= 0 and len(slot.trajectory) <= 64
    if sane and slot.status == "failed" and slot.reason:
        return None, slot.reason
    passed = slot.turns_passed
    if sane and slot.status == "finished" and not slot.reason and slot.turns_total == total and 0 <= passed <= total:
        outcomes = list(slot.outcomes)
        failures = outcomes[passed:]
        if outcomes[:passed] == [True] * passed and failures in ([], [False]) and passed + len(failures) <= total:
            return passed, ""
    return None, "impossible"


def measure(partition: int, events: list[Any]) -> list[Seal]:
    """The seals of a partition of `rods.rollouts`. An event that is none is None."""
    seals: list[Seal] = []
    tasks: dict[str, Task] = {}
    first: list[RolloutFinished] = []
    generation = step = epoch = partitions = late = duplicate = refused = 0
    for offset, event in enumerate(events):
        if event is None:
            refused += 1
        elif isinstance(event, LearnerStarted):
            generation = max(generation, event.generation)
        elif isinstance(event, RolloutFinished):
            if bad(event) or (event.purpose != "evaluate" and event.step > step + 1):
                refused += 1
            elif event.purpose != "evaluate" and event.step <= step:
                late += 1
            elif event.purpose != "evaluate":
                if any(shape(event) == shape(other) for other in first):
                    duplicate += 1
                else:
                    first.append(event)
        elif isinstance(event, BarrierReached):
            if event.generation < generation:
                continue
            generation = event.generation
            if event.step <= step:
                duplicate += 1
                continue
            if event.step != step + 1 or event.epoch < max(epoch, 1) or partitions not in (0, event.partitions):
                refused += 1
                continue
            partitions, epoch, step = event.partitions, event.epoch, event.step
            rules, groups, taken = json.loads(event.rules), [], 0
            for expected in sorted(event.expected, key=lambda expected: expected.task):
                result = next((r for r in first if shape(r) == shape(expected)), None)
                taken += result is not None
                groups.append(close(expected, result, tasks, rules))
            states = {name: task.copy() for name, task in tasks.items()} if event.last_of_epoch else {}
            refused += len(first) - taken
            seal = Seal(epoch, step, partition, partitions, offset, event.last_of_epoch, event.rules, groups, states)
            seal.counts = (late, duplicate, refused)
            seals.append(seal)
            first, late, duplicate, refused = [], 0, 0, 0
        else:
            refused += 1
    return seals


def bad(event: RolloutFinished) -> bool:
    wrong_k = event.k != len(event.slots) or event.k < 1
    return wrong_k or event.turns_total < 1 or event.purpose not in ("train", "probe", "evaluate")


def shape(event: Any) -> tuple[Any, ...]:
    """A result of another K or total, of another task, purpose or category, is none of the group's."""
    return (event.group, event.task, event.purpose, event.k, event.turns_total, event.category)


def close(expected: Any, result: RolloutFinished | None, tasks: dict[str, Task], rules: Json) -> Group:
    if result is None:
        judged: list[tuple[int | None, str]] = [(None, "missing")] * expected.k
    else:
        judged = [judge(slot, expected.turns_total) for slot in result.slots]
    live = [passed for passed, _ in judged if passed is not None]
    task = tasks.setdefault(expected.task, Task(expected.category))
    task.category = expected.category
    if live:
        task.window = [*task.window, (expected.group, live, expected.turns_total)][-rules["measure"]["window"] :]
        task.visits += 1
        task.low = task.low + 1 if task.mean() < Fraction(rules["pool"]["drift_low"]) else 0
        task.high = task.high + 1 if task.mean() > Fraction(rules["pool"]["drift_high"]) else 0
    zone = "none"
    if task.window:
        zone = "boundary"
        zone = "mastered" if task.mean() > Fraction(rules["measure"]["alpha_high"]) else zone
        zone = "hard" if task.mean() < Fraction(rules["measure"]["alpha_low"]) else zone
    spread = zone == "boundary" and task.variance() > Fraction(rules["measure"]["min_variance"])
    return Group(
        expected.group,
        expected.task,
        expected.purpose,
        expected.category,
        result.execution if result else "",
        expected.turns_total,
        [passed for passed, _ in judged],
        [reason for _, reason in judged],
        zone,
        bool(live) and spread,
        task.copy(),
    )


# Select


@dataclass
class Selection:
    epoch: int
    step: int
    seeds: list[list[Any]]
    digest: str


def select(seals: list[Seal]) -> list[Selection]:
    """The selections of the steps whose N seals are there, steps in order."""
    selections: list[Selection] = []
    last: dict[str, int] = {}
    digest = ""
    step = 1
    while True:
        of_step = [seal for seal in seals if seal.step == step]
        if not of_step or len(of_step) < of_step[0].partitions:
            return selections
        rules, epoch = json.loads(of_step[0].rules), of_step[0].epoch
        groups = [group for seal in of_step for group in seal.groups]
        seeds = pick(groups, rules, epoch, step, last)
        digest = sha([digest, epoch, step, rules["select"]["quota"], seeds])
        selections.append(Selection(epoch, step, seeds, digest))
        last.update({seed[1]: step for seed in seeds})
        step += 1


def pick(groups: list[Group], rules: Json, epoch: int, step: int, last: dict[str, int]) -> list[list[Any]]:
    if rules["curriculum"] == "static":
        return []
    cooldown = rules["select"]["cooldown_steps"]
    cooling = {task for task, when in last.items() if step - when <= cooldown}
    free = [g for g in groups if g.purpose == "train" and g.live and g.task not in cooling]
    by_variance = rules["select"]["rank_by"] == "variance"
    chosen: list[Group] = []
    for category in sorted({g.category for g in free}):
        bucket = [g for g in free if g.category == category]
        ranked = sorted(
            [g for g in bucket if g.boundary],
            key=lambda g: (-(g.state.variance() if by_variance else g.state.phi()), g.task),
        )[: rules["select"]["quota"]]
        if rules["curriculum"] == "random":
            ranked = sorted(bucket, key=lambda g: sha([rules["seed"], step, g.task]))[: len(ranked)]
        chosen += ranked
    return [
        [
            sha(["seed", rules["seed"], epoch, step, g.task])[:32],
            g.task,
            g.category,
            ratio(g.state.phi()),
            ratio(g.state.variance()),
            rank,
            [name for name, _, _ in g.state.window],
        ]
        for rank, g in enumerate(chosen)
    ]


def ratio(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
