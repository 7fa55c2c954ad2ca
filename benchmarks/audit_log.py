"""A made log of any size for the audit's benchmark: results from a seed, everything else by the folds that decide.

Tasks are measured in turn, an equal share an epoch, and get better from visit to visit. Seeds are settled as failed, so
that the pool keeps its originals; retirement moves those that drift.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from eventlog.reader import LogRecord
from schemas.codec import encode
from schemas.envelope import Producer, stamp
from schemas.epochs import EpochClosed, EpochOpened, LearnerStarted
from schemas.identity import content_digest, group_id
from schemas.pool import BoundaryOpened, SeedSettled, Settlement, TaskRegistered
from schemas.rollouts import BarrierReached, ExpectedGroup, Purpose, RolloutFinished, Slot
from schemas.rules import MeasureRules, PoolRules, Rules, SelectRules
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed
from schemas.task import TaskDefinition, Turn
from schemas.topics import Topic, partition_of
from streams.archive.partition import PartitionArchive
from streams.archive.worker import keep_schemas
from streams.measure import fold as measure
from streams.measure.state import MeasureState
from streams.pool.decide import decide_boundary
from streams.pool.evidence import SealedSteps
from streams.pool.state import Member, PoolState
from streams.select import fold as select

K, TURNS, STEP_GROUPS, PARTITIONS = 16, 4, 512, 4
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
SEAL_BYTES = 8 * 1024 * 1024
RUN = "made"


@dataclass(frozen=True, slots=True)
class Size:
    """Of a made log."""

    groups: int
    tasks: int
    epochs: int

    @property
    def per_epoch(self) -> int:
        return self.groups // self.epochs


RULES = Rules(
    measure=MeasureRules(window=2),
    select=SelectRules(quota=2, cooldown_steps=8),
    pool=PoolRules(protect_originals=True),
)


class _Writer:
    """The archive, partition by partition. Time is a count of events."""

    def __init__(self, folder: Path) -> None:
        keep_schemas(folder)
        self.archives: dict[tuple[Topic, int], PartitionArchive] = {}
        self.offsets: dict[tuple[Topic, int], int] = {}
        self.clock = 0
        for topic in Topic:
            for partition in range(PARTITIONS if topic.by_task else 1):
                self.archives[topic, partition] = PartitionArchive(folder, topic, partition)

    def stamped(self, event: Any, producer: str = Producer.LEARNER) -> Any:
        self.clock += 1
        return stamp(event, run_id=RUN, occurred_at=self.clock, producer=producer)

    def put(self, topic: Topic, partition: int, event: Any) -> int:
        place = (topic, partition)
        archive = self.archives[place]
        offset = self.offsets.get(place, 0)
        self.offsets[place] = offset + 1
        key = getattr(event, "task", RUN) if topic.by_task else RUN
        archive.add(LogRecord(topic.named("rods."), partition, offset, 0, key.encode(), encode(event), ()), 0.0)
        if archive.unsealed_bytes >= SEAL_BYTES:
            archive.seal()
        return offset

    def close(self) -> None:
        for archive in self.archives.values():
            archive.seal()


class _Made:
    """The run as it is made: the state of every fold."""

    def __init__(self, folder: Path, size: Size, seed: int) -> None:
        self.size, self.chance, self.out = size, Random(seed), _Writer(folder)
        self.names = [f"made-task-{number:06d}" for number in range(size.tasks)]
        self.home = [partition_of(name, PARTITIONS) for name in self.names]
        self.visits = [0] * size.tasks
        self.measure = [MeasureState(number) for number in range(PARTITIONS)]
        self.select = select.SelectState()
        self.seals = SealedSteps()
        self.pool = PoolState()
        self.step = 0

    def run(self) -> None:
        self._register()
        for epoch in range(1, self.size.epochs + 1):
            self._epoch(epoch)
        self.out.close()

    def _register(self) -> None:
        out = self.out
        for partition in range(PARTITIONS):
            self._measured(partition, out.stamped(LearnerStarted(1, "made")))
        out.put(Topic.EPOCHS, 0, out.stamped(LearnerStarted(1, "made")))
        out.put(Topic.POOL, 0, out.stamped(LearnerStarted(1, "made")))
        definitions = {name: _definition(name, number) for number, name in enumerate(self.names)}
        for definition in definitions.values():
            out.put(Topic.POOL, 0, out.stamped(TaskRegistered(1, definition, "pool")))
        self.pool = PoolState(
            generation=1,
            definitions=definitions,
            contents={name: content_digest(definition) for name, definition in definitions.items()},
            members={name: Member(name, original=True, seed="", since=0) for name in self.names},
        )
        self._boundary(0, 0)

    def _epoch(self, epoch: int) -> None:
        opened = EpochOpened(1, epoch, RULES.canonical(), PARTITIONS, "made", {}, "", "", "")
        self.out.put(Topic.EPOCHS, 0, self.out.stamped(opened))
        first = (epoch - 1) * self.size.per_epoch
        numbers = [number % self.size.tasks for number in range(first, first + self.size.per_epoch)]
        for start in range(0, len(numbers), STEP_GROUPS):
            self.step += 1
            chosen = numbers[start : start + STEP_GROUPS]
            self._step(epoch, chosen, last=start + STEP_GROUPS >= len(numbers))
        self._boundary(epoch, self.step)
        closed = EpochClosed(1, epoch, epoch, self.pool.digest)
        self.out.put(Topic.EPOCHS, 0, self.out.stamped(closed))

    def _step(self, epoch: int, numbers: list[int], *, last: bool) -> None:
        expected: list[list[ExpectedGroup]] = [[] for _ in range(PARTITIONS)]
        for number in numbers:
            result = self._result(epoch, number)
            names = (result.group, result.task, result.purpose, K, TURNS, result.category)
            expected[self.home[number]].append(ExpectedGroup(*names))
            self._measured(self.home[number], self.out.stamped(result, Producer.ROLLOUT))
        for partition in range(PARTITIONS):
            barrier = BarrierReached(
                1, epoch, self.step, partition, PARTITIONS, tuple(expected[partition]), RULES.canonical(), last, 0
            )
            for seal in self._measured(partition, self.out.stamped(barrier)):
                self._sealed(seal)

    def _measured(self, partition: int, event: Any) -> tuple[PartitionSealed, ...]:
        offset = self.out.put(Topic.ROLLOUTS, partition, event)
        evolved = measure.evolve(self.measure[partition], offset, event)
        self.measure[partition] = evolved.state
        if evolved.measured is not None:
            self.out.put(Topic.MEASUREMENTS, partition, evolved.measured)
        return evolved.seals

    def _sealed(self, event: PartitionSealed | SelectionClosed) -> None:
        offset = self.out.put(Topic.SEALS, 0, event)
        self.seals.evolve(offset, event)
        selected = select.evolve(self.select, offset, event)
        self.select = selected.state
        for seed in selected.seeds:
            self._seed(seed.partition, seed.event)
        if selected.proposed is not None:
            self._sealed(selected.proposed)

    def _seed(self, partition: int, seed: BoundarySeedSelected) -> None:
        self.out.put(Topic.SEEDS, partition, seed)
        settled = SeedSettled(0, seed.seed, seed.epoch, seed.step, Settlement.FAILED, 0)
        self.out.put(Topic.POOL, 0, self.out.stamped(settled, Producer.SYNTHESIS))

    def _boundary(self, epoch: int, step: int) -> None:
        digest = self.seals.selections[step].digest if epoch else ""
        opened = BoundaryOpened(1, epoch, step, step, digest, RULES.canonical())
        decision = decide_boundary(self.pool, opened, self.seals.evidence(epoch, step), 1)
        for event in (opened, *decision.events()):
            self.out.put(Topic.POOL, 0, self.out.stamped(event))
        self.pool = replace(self.pool, materialized=decision.materialized)
        self.seals.forget_before(epoch + 1, step)

    def _result(self, epoch: int, number: int) -> RolloutFinished:
        skill = (number % 97) / 97 + 0.05 * self.visits[number]
        self.visits[number] += 1
        slots = tuple([self._slot(min(0.98, skill)) for _ in range(K)])
        name, purpose = self.names[number], Purpose.TRAIN.value
        group = group_id(1, epoch, self.step, name, purpose)
        category = CATEGORIES[number % len(CATEGORIES)]
        return RolloutFinished(group, group[:16], epoch, self.step, name, purpose, category, K, TURNS, slots)

    def _slot(self, skill: float) -> Slot:
        passed = 0
        while passed < TURNS and self.chance.random() < skill:
            passed += 1
        outcomes = (True,) * passed + (False,) * (passed < TURNS)
        return Slot("finished", passed, TURNS, outcomes, 5, 120, 90_000, 3, "")


def _definition(name: str, number: int) -> TaskDefinition:
    turns = tuple(Turn((f"do part {turn} of {number}",), (f"act(part={turn})",)) for turn in range(TURNS))
    category = CATEGORIES[number % len(CATEGORIES)]
    return TaskDefinition(name, "workbench", category, f"s{number}", ("Files",), "{}", turns)


def make_log(folder: Path, size: Size, seed: int = 1) -> None:
    """Writes the archive of a made run."""
    _Made(folder, size, seed).run()
