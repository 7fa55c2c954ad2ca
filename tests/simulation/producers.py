"""Rollout and synthesis workers: they answer late, twice, in another order, and with other results."""

from typing import TYPE_CHECKING, Any

from schemas.rollouts import GroupRequested
from schemas.seals import BoundarySeedSelected
from schemas.topics import Topic
from tests.simulation.log import Place
from tests.simulation.outcomes import misshapen, result_of, synthesised

if TYPE_CHECKING:
    from tests.simulation.world import World


class Answers:
    """Sequences of events that wait to be written, each in its order; held ones come late."""

    def __init__(self, world: "World", source: Topic) -> None:
        self.world = world
        self.source = source
        self.positions = {place: 0 for place in world.log.records if place[0] is source}
        self.ready: list[tuple[Place, list[Any]]] = []
        self.held: list[tuple[Place, list[Any]]] = []
        self._read_at = -1

    def step(self) -> bool:
        """Reads a question or writes part of an answer; False where there is nothing to do."""
        rng = self.world.rng
        if self.ready and (rng.random() < 0.6 or not self._behind()):
            self._write(rng.randrange(len(self.ready)))
            return True
        if self.held and rng.random() < 0.02:
            self.ready.append(self.held.pop(rng.randrange(len(self.held))))
            return True
        return self._read()

    def _behind(self) -> bool:
        return any(position < self.world.log.end(place) for place, position in self.positions.items())

    def _write(self, index: int) -> None:
        place, events = self.ready[index]
        self.world.put(place, events.pop(0))
        if not events:
            self.ready.pop(index)

    def _read(self) -> bool:
        if self._read_at == self.world.written:
            return False
        records = self.world.log.records
        for place, position in self.positions.items():
            if position < len(records[place]):
                self.positions[place] = position + 1
                event = self.world.wire.read(records[place][position])
                if event is not None:
                    self.answer(place[1], event)
                return True
        self._read_at = self.world.written
        return False

    def answer(self, partition: int, event: Any) -> None:
        raise NotImplementedError

    def add(self, place: Place, events: list[Any]) -> None:
        """An answer, in time or not."""
        late = self.world.disturbed and self.world.rng.random() < 0.3
        (self.held if late else self.ready).append((place, events))

    def release(self) -> None:
        """Everything held comes now."""
        self.ready += self.held
        self.held = []


class Rollouts(Answers):
    """All rollout workers."""

    def __init__(self, world: "World") -> None:
        super().__init__(world, Topic.ASSIGNMENTS)
        self.executions = 0

    def answer(self, partition: int, event: Any) -> None:
        if not isinstance(event, GroupRequested):
            return
        rng, exact, place = self.world.rng, self.world.schedule.exact, (Topic.ROLLOUTS, partition)
        if not self.world.disturbed:
            self.ready.append((place, [result_of(event, "e0")]))
            return
        answers = rng.choice((1, 1, 1, 2, 3)) if exact else rng.choice((0, 1, 1, 1, 2, 2, 3))
        for _ in range(answers):
            self.executions += 1
            salt = "" if exact or rng.random() < 0.3 else str(self.executions)
            result = result_of(event, f"e{self.executions}", salt)
            self.add(place, [result] * rng.choice((1, 1, 1, 2)))
            if rng.random() < 0.1:
                self.add(place, [misshapen(result, rng.random())])


class Synthesis(Answers):
    """All synthesis workers. One that dies between two variants is followed by one that starts again."""

    def __init__(self, world: "World") -> None:
        super().__init__(world, Topic.SEEDS)
        self.answered: set[str] = set()

    def answer(self, partition: int, event: Any) -> None:
        del partition
        if not isinstance(event, BoundarySeedSelected):
            return
        rng, exact, place = self.world.rng, self.world.schedule.exact, (Topic.POOL, 0)
        events = synthesised(event)
        if not self.world.disturbed:
            self.ready.append((place, events))
            return
        if event.seed in self.answered and rng.random() < 0.5:
            return
        self.answered.add(event.seed)
        if rng.random() < 0.2:
            salt = "" if exact else "again"
            again = synthesised(event, salt)
            self.add(place, again if exact else again[: rng.randint(1, len(again))])
        if exact or rng.random() < 0.9:
            self.add(place, events)
