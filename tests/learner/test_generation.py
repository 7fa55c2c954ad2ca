from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import pytest

from learner.errors import SupersededError
from learner.generation import claim_generation
from learner.history import History
from learner.log import LearnerLog, Write
from schemas.envelope import stamp
from schemas.epochs import LearnerStarted
from schemas.topics import Topic

N = 2
PLACES = {
    ("rods.assignments", 0),
    ("rods.assignments", 1),
    ("rods.rollouts", 0),
    ("rods.rollouts", 1),
    ("rods.pool", 0),
}


class Memory:
    """Partitions in memory. before: what others write just before this learner's next write to a place."""

    def __init__(self) -> None:
        self.partitions, self.prefix, self.run_id = N, "rods.", "run"
        self.written: dict[tuple[str, int], list[Any]] = {}
        self.history = History()
        self.before: dict[tuple[str, int], Any] = {}

    async def write(self, writes: Iterable[Write]) -> list[int]:
        return [self._append((write.topic.named(self.prefix), write.partition), write.event) for write in writes]

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        del seconds
        assert condition()
        return True

    async def read_from(self, starts: Mapping[tuple[str, int], int]) -> list[Any]:
        return [event for place, start in starts.items() for event in self.written[place][start:]]

    def _append(self, place: tuple[str, int], event: Any) -> int:
        added = [other for other in (self.before.pop(place, None), event) if other is not None]
        events = self.written.setdefault(place, [])
        for one in added:
            events.append(one)
            if place[0] == Topic.EPOCHS.named(self.prefix):
                self.history.evolve(len(events) - 1, stamp(one, run_id="run", occurred_at=1, producer="learner"))
        return len(events) - 1


async def claim(memory: Memory, nonce: str = "mine") -> int:
    return await claim_generation(cast(LearnerLog, memory), memory.history, nonce)


async def test_a_claim_is_one_above_the_newest_and_stands_on_every_partition_it_will_write_to() -> None:
    memory = Memory()
    assert await claim(memory) == 1
    assert await claim(memory, "next") == 2
    assert set(memory.written) - {("rods.epochs", 0)} == PLACES
    assert {tuple(e.nonce for e in memory.written[place]) for place in PLACES} == {("mine", "next")}


async def test_the_loser_of_a_race_writes_to_no_other_partition() -> None:
    memory = Memory()
    memory.before["rods.epochs", 0] = LearnerStarted(1, "earlier")
    with pytest.raises(SupersededError):
        await claim(memory)
    assert set(memory.written) == {("rods.epochs", 0)}


async def test_a_claim_overtaken_by_a_newer_learner_is_given_up() -> None:
    memory = Memory()
    memory.before["rods.epochs", 0] = LearnerStarted(4, "newer")
    with pytest.raises(SupersededError):
        await claim(memory)


async def test_a_newer_learner_seen_on_any_partition_ends_the_claim() -> None:
    class Overtaken(Memory):
        async def read_from(self, starts: Mapping[tuple[str, int], int]) -> list[Any]:
            return [*(await Memory.read_from(self, starts)), LearnerStarted(2, "newer")]

    with pytest.raises(SupersededError):
        await claim(Overtaken())


async def test_a_learner_that_slept_through_its_own_fence_notices() -> None:
    class Slept(Memory):
        async def read_from(self, starts: Mapping[tuple[str, int], int]) -> list[Any]:
            await self.write([Write(Topic.EPOCHS, 0, "run", LearnerStarted(2, "newer"))])
            return await Memory.read_from(self, starts)

    with pytest.raises(SupersededError, match="from generation 1"):
        await claim(Slept())
