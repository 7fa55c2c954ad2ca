"""A learner process: the real controller over the simulated log."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventlog.standstill import Place as NamedPlace
from learner.controller import Learner, RunProvenance
from learner.errors import SupersededError
from learner.log import Fold, LearnerLog, Write
from learner.trainer import ScriptedTrainer
from schemas.envelope import Producer, stamp
from schemas.errors import UnknownFingerprintError
from schemas.rules import Rules
from schemas.topics import Topic
from tests.simulation.coroutines import Task, Turn, Until
from tests.simulation.log import Place
from tests.simulation.outcomes import RUN
from tests.simulation.streams_worker import PREFIX

if TYPE_CHECKING:
    from tests.simulation.world import World

WITHOUT_DEADLINE = 300.0
PROVENANCE = RunProvenance("revision", {}, "source", "model", "tokenizer")


class SimulatedLog(LearnerLog):
    """The learner's side of the log. changed: how often a view has moved; expired: the wait in hand is past its end."""

    def __init__(self, world: "World", name: str) -> None:
        super().__init__("", PREFIX, world.log.partitions, RUN, lambda: world.now)
        self._world, self._name = world, name
        self._tails: dict[Place, tuple[Fold, int]] = {}
        self.changed = 0
        self._read_at = -1
        self.seconds: float | None = None
        self.expired = False

    async def start(self, folds: Mapping[Topic, Fold]) -> None:
        for place in self._world.log.records:
            if place[0] in folds:
                self._tails[place] = (folds[place[0]], 0)
        ends = {place: self._world.log.end(place) for place in self._tails}
        await Until(lambda: all(self._tails[place][1] >= end for place, end in ends.items()))

    def follow(self, topic: Topic, fold: Fold) -> None:
        del topic, fold
        raise AssertionError("a scripted trainer reads no trajectories")

    async def stop(self) -> None:
        return None

    async def write(self, writes: Iterable[Write]) -> list[int]:
        self.guard()
        sends = [
            self._world.post(self._name, (write.topic, write.partition), self._stamp(write.event)) for write in writes
        ]
        await Turn()
        await Until(lambda: all(send.offset is not None for send in sends))
        return [send.offset for send in sends if send.offset is not None]

    def _stamp(self, event: Any) -> Any:
        return stamp(event, run_id=RUN, occurred_at=self._world.now, producer=Producer.LEARNER)

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        self.seconds, self.expired = seconds, False
        try:
            while not condition():
                self.guard()
                if self.expired:
                    return False
                seen = self.changed
                await Until(lambda seen=seen: self.changed > seen or self.expired)  # type: ignore[misc]
        finally:
            self.seconds = None
        return True

    async def read_from(self, starts: Mapping[NamedPlace, int]) -> list[Any]:
        found = []
        for (name, partition), start in starts.items():
            place = (Topic(name.removeprefix(PREFIX)), partition)
            found += [self._world.wire.read(value) for value in self._world.log.records[place][start:]]
        return [event for event in found if event is not None]

    def pump(self) -> bool:
        """Feeds the views with a few records of one partition; False where there are none."""
        log, rng = self._world.log, self._world.rng
        if self._read_at == self._world.written:
            return False
        records = log.records
        waiting = [place for place, (_, position) in self._tails.items() if position < len(records[place])]
        if not waiting:
            self._read_at = self._world.written if self._tails else -1
            return False
        place = waiting[int(rng.random() * len(waiting))]
        fold, position = self._tails[place]
        end = min(log.end(place), position + rng.randint(1, 6))
        for offset in range(position, end):
            fold(place[1], offset, self._world.wire.read(log.records[place][offset]))
        self._tails[place] = (fold, end)
        self.changed += 1
        return True


class LearnerProcess:
    """One process. finished: it trained all epochs; otherwise, once done, another learner owned the run."""

    def __init__(self, world: "World", name: str, rules: Rules) -> None:
        setting = world.schedule.setting
        self.world, self.name = world, name
        self.log = SimulatedLog(world, name)
        self.learner = Learner(
            self.log,
            rules,
            ScriptedTrainer(),
            PROVENANCE,
            setting.originals,
            setting.heldout,
            Path("/nowhere"),
            nonce=name,
        )
        self.paused = self.finished = False
        self.task = Task(self.learner.run())

    @property
    def done(self) -> bool:
        return self.task.done

    def step(self) -> bool:
        """Does one thing; False where there is none to do."""
        if self.world.rng.random() < 0.5 and self.log.pump():
            return True
        if not self.task.runnable():
            return self.log.pump()
        try:
            self.task.step()
            self.finished = self.task.done
            self.world.finished |= self.finished
        except SupersededError:
            self.world.trace("%s: another learner owns the run", self.name)
        except UnknownFingerprintError:
            self.world.trace("%s: stops at a schema that it does not know", self.name)
        return True

    @property
    def hurried(self) -> bool:
        """Whether it waits for something that has a deadline."""
        return self.log.seconds is not None and self.log.seconds != WITHOUT_DEADLINE

    def hurry(self) -> None:
        self.log.expired = True

    def die(self) -> None:
        self.task.drop()
