"""The messages that every variant reads: groups of K attempts by task, and barriers after each step."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.envelope import Producer, stamp
from schemas.identity import group_id
from schemas.rollouts import BarrierReached, ExpectedGroup, Purpose, RolloutFinished, Slot, SlotStatus
from schemas.rules import Rules
from schemas.topics import partition_of

K = 16
TURNS = 4
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
RULES = Rules()
_RUN = "benchmark"


@dataclass(frozen=True, slots=True)
class Load:
    """groups: in all. tasks: different ones, visited in turn. step: groups between two barriers."""

    groups: int
    tasks: int
    step: int
    partitions: int

    @property
    def steps(self) -> int:
        return -(-self.groups // self.step)


def steps(load: Load) -> Iterator[list[tuple[int, str, RolloutFinished | BarrierReached]]]:
    """Each step's events in order, with their partition and key."""
    rng = random.Random(7)
    for step in range(1, load.steps + 1):
        first = (step - 1) * load.step
        numbers = range(first, min(first + load.step, load.groups))
        yield step_events([f"task-{number % load.tasks:06d}" for number in numbers], step, load.partitions, rng)


def step_events(
    tasks: list[str], step: int, partitions: int, rng: random.Random
) -> list[tuple[int, str, RolloutFinished | BarrierReached]]:
    """The results of one step, then its barriers."""
    expected: list[list[ExpectedGroup]] = [[] for _ in range(partitions)]
    events: list[tuple[int, str, RolloutFinished | BarrierReached]] = []
    for task in tasks:
        partition = partition_of(task, partitions)
        finished = result(task, step, rng)
        expected[partition].append(ExpectedGroup(finished.group, task, finished.purpose, K, TURNS, finished.category))
        events.append((partition, task, finished))
    barriers = [barrier(step, partition, partitions, tuple(groups)) for partition, groups in enumerate(expected)]
    return events + [(event.partition, _RUN, event) for event in barriers]


def result(task: str, step: int, rng: random.Random) -> RolloutFinished:
    """A group as a rollout worker writes it."""
    category = CATEGORIES[hash_of(task) % len(CATEGORIES)]
    group = group_id(1, 1, step, task, Purpose.TRAIN)
    event = RolloutFinished(
        group=group,
        execution=f"{rng.getrandbits(64):016x}",
        epoch=1,
        step=step,
        task=task,
        purpose=Purpose.TRAIN,
        category=category,
        k=K,
        turns_total=TURNS,
        slots=tuple([_slot(rng) for _ in range(K)]),
    )
    return stamp(event, run_id=_RUN, occurred_at=1_000_000 + step, producer=Producer.ROLLOUT, correlation_id=group)


def hash_of(task: str) -> int:
    return sum(task.encode())


def _slot(rng: random.Random) -> Slot:
    passed = rng.randrange(TURNS + 1)
    outcomes = ((True,) * passed + (False,))[:TURNS]
    trajectory = f"{rng.getrandbits(256):064x}"
    return Slot(SlotStatus.FINISHED, passed, TURNS, outcomes, 6, 180, 2_400_000, 1, trajectory)


def barrier(step: int, partition: int, partitions: int, expected: tuple[ExpectedGroup, ...]) -> BarrierReached:
    """The barrier of one partition."""
    event = BarrierReached(1, 1, step, partition, partitions, expected, RULES.canonical(), False, 0)
    return stamp(event, run_id=_RUN, occurred_at=2_000_000 + step, producer=Producer.LEARNER)
