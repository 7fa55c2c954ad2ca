"""One task's story: where it came from, what was measured of it, which decisions took it, and what came of it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from schemas.codec import PlainEvent, decode, decode_plain, kind_of_frame
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
from schemas.rollouts import RolloutFinished
from schemas.seals import PartitionSealed, SealedGroup, SelectionClosed, WindowGroup
from schemas.synthesis import StageFinished, VariantRejected
from schemas.task import TaskDefinition
from schemas.topics import Topic, partition_of
from streams.audit.collector import uncollected
from streams.audit.errors import AuditError, of_a_run
from streams.audit.load.epochs import partitions_of
from streams.audit.load.shared_work import shared
from streams.audit.load.source import LogSource, placed, records_at
from streams.audit.mentions import Mentions
from streams.audit.quick_seal import GroupReader, SealedGroups
from streams.measure.exact import mean_of, text_of


class Fact(NamedTuple):
    """Something that happened to a task. place: where it stands in the log."""

    epoch: int
    step: int
    kind: str
    text: str
    place: str


@dataclass(slots=True)
class TaskStory:
    """A task, its facts in order, and its children, one story each."""

    task: str
    parent: str | None
    category: str
    turns: int
    seed: str = ""
    facts: list[Fact] = field(default_factory=list)
    children: list["TaskStory"] = field(default_factory=list)

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
    root: TaskStory

    def tasks(self) -> Iterator[tuple[int, TaskStory]]:
        """Depth and story of each, the root at 0 and first, children below their parents."""
        waiting = [(0, self.root)]
        while waiting:
            depth, story = waiting.pop()
            yield depth, story
            waiting += [(depth + 1, child) for child in reversed(story.children)]


@uncollected()
@of_a_run()
def lineage(source: LogSource, task: str) -> Lineage:
    """The tree of a task. Raises AuditError where the log does not know it."""
    return _Trace(source, task).lineage()


class _Trace:
    def __init__(self, source: LogSource, task: str) -> None:
        self.source, self.task = source, task
        self.stories: dict[str, TaskStory] = {}
        self.seeds: dict[str, str] = {}
        self.partitions = partitions_of(source)
        self.deferred: list[tuple[str, Fact]] = []

    def lineage(self) -> Lineage:
        self._pool()
        if self.task not in self.stories:
            raise AuditError(f"the log knows no task {self.task[:200]!r}")
        root = self._root()
        tree = self._tree(root)
        numbers = self._partitions_of(tree, Topic.ROLLOUTS)
        many = sum(self.source.end(Topic.ROLLOUTS, number) for number in numbers) > _MANY_RESULTS
        with shared([partial(_rollouts, self.source, number, tree) for number in numbers], 2 if many else 1) as work:
            self._seals(tree)
            self._synthesis(tree)
            for task, fact in chain.from_iterable(work.results()):
                self.stories[task].facts.append(fact)
        for task, fact in self.deferred:
            if task in tree:
                self.stories[task].facts.append(fact)
        for task in tree:
            story = self.stories[task]
            story.facts = sorted(dict.fromkeys(story.facts), key=lambda fact: (fact.epoch, fact.step, _rank(fact)))
        return Lineage(self.task, self.stories[root])

    def _root(self) -> str:
        task, seen = self.task, {self.task}
        while (parent := self.stories[task].parent) and parent in self.stories and parent not in seen:
            task = parent
            seen.add(parent)
        return task

    def _tree(self, root: str) -> set[str]:
        children: dict[str, list[str]] = {}
        for story in self.stories.values():
            if story.parent:
                children.setdefault(story.parent, []).append(story.task)
        found, waiting = {root}, [root]
        while waiting:
            task = waiting.pop()
            for child in sorted(children.get(task, ())):
                if child not in found:
                    found.add(child)
                    waiting.append(child)
                    self.stories[task].children.append(self.stories[child])
        return found

    def _pool(self) -> None:
        for offset, event in self._told() if self.source.partitions(Topic.POOL) else ():
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

    def _told(self) -> Iterator[tuple[int, Any]]:
        """The events of the pool that are about one task or seed; those that list the whole pool are not decoded."""
        for record in self.source.records(Topic.POOL, 0):
            kind = kind_of_frame(record.value or b"")
            if kind is None or kind in _OF_ONE_TASK:
                yield record.offset, placed(self.source, Topic.POOL, 0, record).event

    def _define(self, definition: TaskDefinition, seed: str, fact: Fact) -> None:
        if definition.task not in self.stories:
            self.stories[definition.task] = TaskStory(
                definition.task, definition.parent, definition.category, definition.turns_total, seed, [fact]
            )

    def _defer(self, task: str, fact: Fact) -> None:
        self.deferred.append((task, fact))

    def _defer_seed(self, seed: str, fact: Fact) -> None:
        self.deferred.append((f"seed {seed}", fact))

    def _seals(self, tree: set[str]) -> None:
        owners: dict[str, str] = {}
        for offset, event in self._sealed(tree) if self.source.partitions(Topic.SEALS) else ():
            where = f"seals/0 at offset {offset}"
            if isinstance(event, SealedGroups):
                for group in event.groups:
                    fact = Fact(event.epoch, event.step, "measured", _measured(group), where)
                    self.stories[group.task].facts.append(fact)
                continue
            for seed in event.seeds:
                if seed.task in tree:
                    owners[f"seed {seed.seed}"] = seed.task
                    text = f"seed {seed.seed}, phi {seed.phi}, rank {seed.rank}; {_groups(seed.evidence)}"
                    self.stories[seed.task].facts.append(Fact(event.epoch, event.step, "selected", text, where))
        self.deferred = [(owners.get(task, task), fact) for task, fact in self.deferred]

    def _sealed(self, tree: set[str]) -> Iterator[tuple[int, SealedGroups | SelectionClosed]]:
        """The groups of the tree, and every selection that names a task of it."""
        mentions, reader = Mentions(tree), GroupReader(tree)
        for record in records_at(self.source, Topic.SEALS, 0, mentions.sealed):
            value = record.value or b""
            found = reader.read(value)
            if found is not None:
                yield record.offset, found
            elif mentions.named(value):
                with suppress(UndecodableError):
                    event = decode(value)
                    if isinstance(event, PartitionSealed):
                        own = [group for group in event.groups if group.task in tree]
                        yield record.offset, SealedGroups(event.epoch, event.step, own)
                    elif isinstance(event, SelectionClosed):
                        yield record.offset, event

    def _synthesis(self, tree: set[str]) -> None:
        mentions = Mentions(tree)
        for partition in self._partitions_of(tree, Topic.SYNTHESIS):
            for offset, (kind, _, event) in _found(self.source, Topic.SYNTHESIS, partition, mentions, _STAGES):
                if event["task"] in tree:
                    where = f"synthesis/{partition} at offset {offset}"
                    self.stories[event["task"]].facts.append(_stage(kind, event, where))

    def _partitions_of(self, tree: set[str], topic: Topic) -> list[int]:
        wanted = {partition_of(task, self.partitions) for task in tree}
        return [number for number in self.source.partitions(topic) if number in wanted]


_STAGES = (StageFinished.KIND, VariantRejected.KIND)
_OF_ONE_TASK = frozenset(
    kind.KIND
    for kind in (TaskRegistered, VariantVerified, SeedSettled, TaskInjected, TaskRetired, TaskProbed, OperatorDecided)
)
_MANY_RESULTS = 100_000
"""So many are worth the start of a process, which takes as long as reading them."""
_LAST = 2**31
"""A boundary stands after every step of its epoch."""
_RANKS = ("registered", "verified", "rollout (train)", "rollout (probe)", "measured", "selected", "stage", "rejected")


def _rollouts(source: LogSource, partition: int, tree: set[str]) -> list[tuple[str, Fact]]:
    """What the results of a partition say, each with its task. For a process of its own, where there are many."""
    facts = []
    kinds = (RolloutFinished.KIND,)
    for offset, (_, _, event) in _found(source, Topic.ROLLOUTS, partition, Mentions(tree), kinds):
        if event["task"] in tree:
            slots = [slot["turns_passed"] if slot["reason"] is None else slot["reason"] for slot in event["slots"]]
            text = f"group {event['group']}, execution {event['execution'][:12]}: passed {slots}"
            where = f"rollouts/{partition} at offset {offset}"
            fact = Fact(event["epoch"], event["step"], f"rollout ({event['purpose']})", text, where)
            facts.append((event["task"], fact))
    return facts


def _found(
    source: LogSource, topic: Topic, partition: int, mentions: Mentions, kinds: Collection[str]
) -> Iterator[tuple[int, PlainEvent]]:
    """The events of some kinds that name a task."""
    for record in records_at(source, topic, partition, mentions.named):
        value = record.value or b""
        if kind_of_frame(value) in (None, *kinds):
            with suppress(UndecodableError):
                yield record.offset, decode_plain(value)


def _rank(fact: Fact) -> int:
    return _RANKS.index(fact.kind) if fact.kind in _RANKS else len(_RANKS)


def _measured(group: SealedGroup) -> str:
    slots = [turns if turns is not None else reason for turns, reason in zip(group.passed, group.reasons, strict=False)]
    state = group.state
    mean = _mean(state.window)
    boundary = ", at the boundary" if group.boundary else ""
    return (
        f"{group.purpose} group {group.group}: passed {slots} of {group.turns_total}; "
        f"mean {mean}, {group.zone}{boundary}, visit {state.visits}"
    )


def _mean(window: Sequence[WindowGroup]) -> str:
    """A seal that no fold took in may hold anything; that is no reason to tell nothing of its task."""
    try:
        return text_of(mean_of(window)) if window else "unknown"
    except ZeroDivisionError:
        return "impossible"


def _stage(kind: str, event: dict[str, Any], where: str) -> Fact:
    attempt = f"variant {event['index']}, attempt {event['attempt']}: {event['stage']}"
    if kind == VariantRejected.KIND:
        return Fact(event["epoch"], event["step"], "rejected", f"{attempt}: {event['reason']}", where)
    return Fact(event["epoch"], event["step"], "stage", f"{attempt} {'passed' if event['ok'] else 'failed'}", where)


def _groups(evidence: tuple[str, ...]) -> str:
    return "on group " + ", ".join(evidence) if evidence else "on no group"


def story_lines(found: Lineage) -> Iterator[str]:
    """A tree for a person, children under their parents."""
    for depth, story in found.tasks():
        pad = "    " * depth
        mark = "  <- asked for" if story.task == found.wanted else ""
        made = f", from seed {story.seed}" if story.seed else ", original"
        yield f"{pad}{story.task}  {story.category}, {story.turns} turns{made}{mark}"
        for fact in story.facts:
            at = f"epoch {fact.epoch}" + (f", step {fact.step}" if 0 < fact.step < _LAST else "")
            yield f"{pad}  {at:<18} {fact.kind:<15} {fact.text}  [{fact.place}]"
