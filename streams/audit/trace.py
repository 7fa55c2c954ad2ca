"""One task's history: where it came from, what was measured of it, which decisions took it, and what came of it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from schemas.codec import PlainEvent, consecutive, decode_plain, kind_of_frame, leading
from schemas.errors import UndecodableError
from schemas.pool import (
    OperatorDecided,
    SeedSettled,
    TaskInjected,
    TaskProbed,
    TaskRegistered,
    TaskRetired,
    VariantVerified,
)
from schemas.rollouts import Purpose, RolloutFinished
from schemas.seals import PartitionSealed, SealedGroup, SelectionClosed, WindowGroup
from schemas.synthesis import StageFinished, VariantRejected
from schemas.task import TaskDefinition
from schemas.topics import Topic, partition_of
from streams.audit.collector import uncollected
from streams.audit.errors import AuditError, of_a_run
from streams.audit.load.epochs import partitions_of
from streams.audit.load.shared_work import shared
from streams.audit.load.source import LogSource, placed
from streams.measure.exact import mean_of, text_of


class Fact(NamedTuple):
    """Something that happened to a task. place: topic, partition and offset."""

    epoch: int
    step: int
    kind: str
    text: str
    place: str


@dataclass(slots=True)
class TaskHistory:
    """A task, its facts in order, and its children, each with a history of its own."""

    task: str
    parent: str | None
    category: str
    turns: int
    seed: str = ""
    facts: list[Fact] = field(default_factory=list)
    children: list["TaskHistory"] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As JSON holds it; children name their parent, since a chain of variants may be deeper than JSON nests."""
        return {
            "task": self.task,
            "parent": self.parent,
            "category": self.category,
            "turns": self.turns,
            "seed": self.seed,
            "facts": [fact._asdict() for fact in self.facts],
        }


@dataclass(frozen=True, slots=True)
class Lineage:
    """The tree that a task belongs to, from the original at its root. wanted: the task that was asked for."""

    wanted: str
    root: TaskHistory

    def tasks(self) -> Iterator[tuple[int, TaskHistory]]:
        """Depth and history of each, the root at 0 and first, children below their parents."""
        waiting = [(0, self.root)]
        while waiting:
            depth, history = waiting.pop()
            yield depth, history
            waiting += [(depth + 1, child) for child in reversed(history.children)]


@uncollected()
@of_a_run()
def lineage(source: LogSource, task: str) -> Lineage:
    """The tree of a task. Raises AuditError where the log does not know it."""
    return _Trace(source, task).lineage()


class _Trace:
    def __init__(self, source: LogSource, task: str) -> None:
        self.source, self.task = source, task
        self.histories: dict[str, TaskHistory] = {}
        self.seeds: dict[str, str] = {}
        self.partitions = partitions_of(source)
        self.deferred: list[tuple[str, Fact]] = []

    def lineage(self) -> Lineage:
        self._pool()
        if self.task not in self.histories:
            raise AuditError(f"the log knows no task {self.task[:200]!r}")
        root = self._root()
        tree = self._tree(root)
        numbers = self._partitions_of(tree, Topic.ROLLOUTS)
        many = sum(self.source.end(Topic.ROLLOUTS, number) for number in numbers) > _MANY_RESULTS
        with shared([partial(_rollouts, self.source, number, tree) for number in numbers], 2 if many else 1) as work:
            self._seals(tree)
            self._synthesis(tree)
            for task, fact in chain.from_iterable(work.results()):
                self.histories[task].facts.append(fact)
        for task, fact in self.deferred:
            if task in tree:
                self.histories[task].facts.append(fact)
        for task in tree:
            history = self.histories[task]
            history.facts = sorted(dict.fromkeys(history.facts), key=lambda fact: (fact.epoch, fact.step, _rank(fact)))
        return Lineage(self.task, self.histories[root])

    def _root(self) -> str:
        task, seen = self.task, {self.task}
        while (parent := self.histories[task].parent) and parent in self.histories and parent not in seen:
            task = parent
            seen.add(parent)
        return task

    def _tree(self, root: str) -> set[str]:
        children: dict[str, list[str]] = {}
        for history in self.histories.values():
            if history.parent:
                children.setdefault(history.parent, []).append(history.task)
        found, waiting = {root}, [root]
        while waiting:
            task = waiting.pop()
            for child in sorted(children.get(task, ())):
                if child not in found:
                    found.add(child)
                    waiting.append(child)
                    self.histories[task].children.append(self.histories[child])
        return found

    def _pool(self) -> None:
        for offset, event in self._of_one_task() if self.source.partitions(Topic.POOL) else ():
            place = f"pool/0 at offset {offset}"
            match event:
                case TaskRegistered():
                    self._define(event.definition, "", Fact(0, 0, "registered", f"for the {event.task_set}", place))
                case VariantVerified():
                    text = f"passed every gate, from seed {event.seed}"
                    fact = Fact(event.epoch, event.step, "verified", text, place)
                    self._define(event.definition, event.seed, fact)
                case SeedSettled():
                    text = f"seed {event.seed} {event.outcome} with {event.variants} variants"
                    self._defer_seed(event.seed, Fact(event.epoch, event.step, "settled", text, place))
                case TaskInjected():
                    text = "returned to the pool" if event.returned else "entered the pool"
                    self._defer(event.task, Fact(event.epoch, _LAST, "injected", text, place))
                case TaskRetired():
                    text = f"by {event.rule}, mean {event.mean or 'unknown'}, {event.visits} visits; " + _groups(
                        event.evidence
                    )
                    self._defer(event.task, Fact(event.epoch, _LAST, "retired", text, place))
                case TaskProbed():
                    text = f"{event.zone}, mean {event.mean or 'unknown'}"
                    self._defer(event.task, Fact(event.epoch, _LAST, "probed", text, place))
                case OperatorDecided():
                    text = f"{event.decision} by {event.who}: {event.why}"
                    self._defer(event.task, Fact(0, _LAST, "operator", text, place))

    def _of_one_task(self) -> Iterator[tuple[int, Any]]:
        """The events of the pool that are about one task or seed; those that list all of the pool are not decoded."""
        for record in self.source.records(Topic.POOL, 0):
            kind = kind_of_frame(record.value or b"")
            if kind is None or kind in _OF_ONE_TASK:
                yield record.offset, placed(self.source, Topic.POOL, 0, record).event

    def _define(self, definition: TaskDefinition, seed: str, fact: Fact) -> None:
        if definition.task not in self.histories:
            self.histories[definition.task] = TaskHistory(
                definition.task, definition.parent, definition.category, definition.turns_total, seed, [fact]
            )

    def _defer(self, task: str, fact: Fact) -> None:
        self.deferred.append((task, fact))

    def _defer_seed(self, seed: str, fact: Fact) -> None:
        self.deferred.append((f"seed {seed}", fact))

    def _seals(self, tree: set[str]) -> None:
        owners: dict[str, str] = {}
        for offset, (kind, _, event) in self._sealed(tree) if self.source.partitions(Topic.SEALS) else ():
            where = f"seals/0 at offset {offset}"
            if kind == PartitionSealed.KIND:
                for group in event["groups"]:
                    if group["task"] in tree:
                        fact = Fact(event["epoch"], event["step"], "measured", _measured(group), where)
                        self.histories[group["task"]].facts.append(fact)
                continue
            for seed in event["seeds"]:
                if seed["task"] in tree:
                    owners[f"seed {seed['seed']}"] = seed["task"]
                    text = f"seed {seed['seed']}, phi {seed['phi']}, rank {seed['rank']}; {_groups(seed['evidence'])}"
                    self.histories[seed["task"]].facts.append(
                        Fact(event["epoch"], event["step"], "selected", text, where)
                    )
        self.deferred = [(owners.get(task, task), fact) for task, fact in self.deferred]

    def _sealed(self, tree: set[str]) -> Iterator[tuple[int, PlainEvent]]:
        """The selections, and of the seals in which a group of the tree may be the fields up to the groups."""
        may_name = _group_finder(tree)
        for record in self.source.records(Topic.SEALS, 0):
            value = record.value or b""
            kind = kind_of_frame(value)
            with suppress(UndecodableError):
                if kind == SelectionClosed.KIND:
                    yield record.offset, decode_plain(value)
                elif kind == PartitionSealed.KIND and may_name(value):
                    yield record.offset, leading(value, "groups")

    def _synthesis(self, tree: set[str]) -> None:
        for partition in self._partitions_of(tree, Topic.SYNTHESIS):
            for offset, (kind, _, event) in _of_tasks(self.source, Topic.SYNTHESIS, partition, tree, _STAGES):
                where = f"synthesis/{partition} at offset {offset}"
                self.histories[event["task"]].facts.append(_stage(kind, event, where))

    def _partitions_of(self, tree: set[str], topic: Topic) -> list[int]:
        wanted = {partition_of(task, self.partitions) for task in tree}
        return [number for number in self.source.partitions(topic) if number in wanted]


_STAGES = (StageFinished.KIND, VariantRejected.KIND)
_OF_ONE_TASK = frozenset(
    kind.KIND
    for kind in (TaskRegistered, VariantVerified, SeedSettled, TaskInjected, TaskRetired, TaskProbed, OperatorDecided)
)
_FEW_TASKS = 16
_MANY_RESULTS = 100_000
"""So many are worth the start of a process, which takes as long as reading them."""
_LAST = 2**31
"""A boundary is sorted after every step of its epoch."""
_RANKS = ("registered", "verified", "rollout (train)", "rollout (probe)", "measured", "selected", "stage", "rejected")


def _rollouts(source: LogSource, partition: int, tree: set[str]) -> list[tuple[str, Fact]]:
    """What the results of a partition say, each with its task. For a process of its own, where there are many."""
    facts = []
    for offset, (_, _, event) in _of_tasks(source, Topic.ROLLOUTS, partition, tree, (RolloutFinished.KIND,)):
        slots = [slot["turns_passed"] if slot["reason"] is None else slot["reason"] for slot in event["slots"]]
        text = f"group {event['group']}, execution {event['execution'][:12]}: passed {slots}"
        where = f"rollouts/{partition} at offset {offset}"
        fact = Fact(event["epoch"], event["step"], f"rollout ({event['purpose']})", text, where)
        facts.append((event["task"], fact))
    return facts


def _of_tasks(
    source: LogSource, topic: Topic, partition: int, tasks: set[str], kinds: Collection[str]
) -> Iterator[tuple[int, PlainEvent]]:
    """The events of some kinds that are about one of the tasks."""
    for record in source.records(topic, partition):
        value = record.value or b""
        if kind_of_frame(value) in kinds:
            with suppress(UndecodableError):
                if leading(value, "task").record["task"] in tasks:
                    yield record.offset, decode_plain(value)


def _group_finder(tasks: set[str]) -> Callable[[bytes], bool]:
    """Whether a group of one of the tasks may be in a seal's frame. A snapshot seal holds the state of every task,
    so the id alone says little; in a group, its purpose follows. Many tasks are not looked for."""
    if len(tasks) > _FEW_TASKS:
        return lambda _: True
    named = [consecutive(SealedGroup, task=task, purpose=purpose.value) for task in tasks for purpose in Purpose]
    return lambda frame: any(name in frame for name in named)


def _rank(fact: Fact) -> int:
    return _RANKS.index(fact.kind) if fact.kind in _RANKS else len(_RANKS)


def _measured(group: dict[str, Any]) -> str:
    passed, state = group["passed"], group["state"]
    slots = [turns if turns is not None else why for turns, why in zip(passed, group["reasons"], strict=False)]
    boundary = ", at the boundary" if group["boundary"] else ""
    return (
        f"{group['purpose']} group {group['group']}: passed {slots} of {group['turns_total']}; "
        f"mean {_mean(state['window'])}, {group['zone']}{boundary}, visit {state['visits']}"
    )


def _mean(window: Sequence[dict[str, Any]]) -> str:
    """A seal that no fold took in may hold anything; its task has a history all the same."""
    try:
        return text_of(mean_of([WindowGroup(**group) for group in window])) if window else "unknown"
    except ZeroDivisionError:
        return "impossible"


def _stage(kind: str, event: dict[str, Any], where: str) -> Fact:
    attempt = f"variant {event['index']}, attempt {event['attempt']}: {event['stage']}"
    if kind == VariantRejected.KIND:
        return Fact(event["epoch"], event["step"], "rejected", f"{attempt}: {event['reason']}", where)
    return Fact(event["epoch"], event["step"], "stage", f"{attempt} {'passed' if event['ok'] else 'failed'}", where)


def _groups(evidence: Sequence[str]) -> str:
    return "on group " + ", ".join(evidence) if evidence else "on no group"


def history_lines(found: Lineage) -> Iterator[str]:
    """A tree for a person, children under their parents."""
    for depth, history in found.tasks():
        pad = "    " * depth
        mark = "  <- asked for" if history.task == found.wanted else ""
        made = f", from seed {history.seed}" if history.seed else ", original"
        yield f"{pad}{history.task}  {history.category}, {history.turns} turns{made}{mark}"
        for fact in history.facts:
            at = f"epoch {fact.epoch}" + (f", step {fact.step}" if 0 < fact.step < _LAST else "")
            yield f"{pad}  {at:<18} {fact.kind:<15} {fact.text}  [{fact.place}]"
