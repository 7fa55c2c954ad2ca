"""A worker of the streams service: the real agents, gate and recovery, fed and interrupted by the simulation.

It assigns as `streams.service.app` does: the gate closes, the seals are read to the end they have, what the group was
told to begin behind is folded from the log, what nobody selected yet is proposed, and the gate opens if the group has
not moved on.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from schemas.envelope import Event
from schemas.topics import Topic
from streams.errors import OffsetGapError
from streams.measure.agent import Arrived, MeasureAgent
from streams.measure.sealing import Sealing
from streams.seals.reader import SealLog
from streams.select.agent import SelectAgent
from streams.service.catch_up import Standing, missing
from streams.service.outbox import Outbox
from streams.service.session import Gate, MeasurePosition, SelectPosition, Session
from tests.simulation.coroutines import Task, Turn, Until
from tests.simulation.log import SEALS, Place, Send

if TYPE_CHECKING:
    from tests.simulation.world import World

PREFIX = "rods."


@dataclass(slots=True)
class Client:
    """What the gate asks the framework: the group's generation, as this client knows it."""

    consumer_generation_id: int = -1


@dataclass(slots=True)
class Message:
    generation_id: int
    topic: str
    partition: int
    offset: int
    value: Any
    timestamp: float = 1.0


@dataclass(slots=True)
class Delivered:
    message: Message
    place: Place


class PostOffice(Outbox):
    """The outbox over the simulated network."""

    def __init__(self, world: "World", sender: str) -> None:
        super().__init__(None, PREFIX)
        self._world = world
        self._sender = sender
        self._sends: list[Send] = []

    async def post(self, topic: Topic, partition: int, key: str, event: Event) -> bytes:
        """Events travel as they are; the bytes are of use only where a process knows its own seals, and none does."""
        del key
        self._sends.append(self._world.post(self._sender, (topic, partition), event))
        return b""

    async def settled(self) -> None:
        sends, self._sends = self._sends, []
        if self._world.impatient:
            return
        await Until(lambda: all(send.offset is not None for send in sends))


@dataclass(slots=True)
class Consumer:
    """Positions, acknowledgements, and what was fetched under an older generation."""

    places: tuple[Place, ...] = ()
    positions: dict[Place, int] = field(default_factory=dict)
    acked: dict[Place, set[int]] = field(default_factory=dict)
    committed: dict[Place, int] = field(default_factory=dict)
    stale: dict[Topic, list[Delivered]] = field(default_factory=dict)


class StreamsWorker:
    """One process. paused: it does nothing; deaf: it has not noticed that the group went on without it. done: never."""

    done = False

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.name = world, name
        self.client = Client()
        self.gate = Gate(self.client)
        self.consumer = Consumer()
        self.outbox, self.select_outbox = PostOffice(world, name), PostOffice(world, name)
        self.sealing = Sealing(self.outbox, PREFIX, self._start_sealing, self._acknowledge)
        self.measure = MeasureAgent(self.gate, self.outbox, self.sealing, self._refetch)
        self.select = SelectAgent(self.gate, self.select_outbox, PREFIX)
        self.open = self.paused = self.deaf = False
        self.notice: tuple[int, tuple[Place, ...]] | None = None
        self.tasks: dict[str, Task] = {}
        self._acts = (self._tasks, self._measure, self._select, self._commit, self._listen)
        self._idle_at = -1

    def revoke(self, generation: int, places: tuple[Place, ...]) -> None:
        """A rebalance that this worker takes part in: what it held is gone, what it gets is known."""
        self.gate.close()
        self.open = self.deaf = False
        self._keep_stale()
        self.client.consumer_generation_id = generation
        self.notice = (generation, places)
        self._idle_at = -1

    def _keep_stale(self) -> None:
        """Messages that were fetched before stay in the framework's buffers."""
        consumer = self.consumer
        stale: dict[Topic, list[Delivered]] = {}
        for place in consumer.places:
            if self.world.rng.random() < 0.3 and place in consumer.positions:
                ahead = range(consumer.positions[place], self.world.log.end(place))[:2]
                stale.setdefault(place[0], []).extend([self._message(place, offset) for offset in ahead])
        self.consumer = Consumer(stale=stale)

    async def ack(self, event: Delivered) -> None:
        """The stream's part: whoever acknowledges, it counts for what the worker holds now."""
        self._acknowledge([event])

    def _acknowledge(self, events: Iterable[Delivered]) -> None:
        for event in events:
            acked = self.consumer.acked.get(event.place)
            if acked is not None:
                acked.add(event.message.offset)

    def _start_sealing(self, sealing: Coroutine[Any, Any, None]) -> None:
        self.tasks["seal"] = Task(sealing)

    def die(self) -> None:
        for task in self.tasks.values():
            task.drop()

    def step(self) -> bool:
        """Does one thing; False where there is none to do.

        Raises OffsetGapError where a member of the group finds a gap. A process that was paused while it read the
        seals, and wakes to later commits, ends at one; its successor has all it had.
        """
        try:
            return self._act()
        except OffsetGapError:
            if self.client.consumer_generation_id == self.world.group.generation:
                raise
            self.world.kill_worker(self.name)
            return True

    def _act(self) -> bool:
        """Who had nothing to do has nothing to do until something is written, or the group moves on."""
        if self._idle_at == self.world.written and not self.deaf:
            return False
        acts = self._acts
        first = int(self.world.rng.random() * len(acts))
        for act in acts[first:] + acts[:first]:
            if act():
                return True
        if not self.deaf:
            self._idle_at = self.world.written
        return False

    @property
    def idle(self) -> bool:
        """Whether everything delivered is done with."""
        return not self.tasks and self.notice is None and not self.deaf

    def _tasks(self) -> bool:
        if self.notice is not None and "assign" not in self.tasks:
            generation, places = self.notice
            self.notice = None
            self.tasks["assign"] = Task(self._assign(generation, places))
        runnable = [name for name, task in self.tasks.items() if task.runnable()]
        if not runnable:
            return False
        self._go(self.world.rng.choice(runnable))
        return True

    def _go(self, name: str) -> None:
        task = self.tasks[name]
        task.step()
        if task.done:
            del self.tasks[name]

    async def _assign(self, generation: int, places: tuple[Place, ...]) -> None:
        """As `streams.service.app` does."""
        world = self.world
        self.gate.close()
        self.open = False
        seals = await self._read_seals(places)
        standing = {place: Standing(world.group.committed.get(place, 0), world.log.end(place)) for place in places}
        measure = {p: MeasurePosition(state, sealed=state.next_offset) for p, state in seals.states.items()}
        for number, position in measure.items():
            offsets = missing("rollouts", number, position.state.next_offset, standing[Topic.ROLLOUTS, number])
            if offsets:
                await self.measure.catch_up(
                    position, number, offsets.stop, lambda: self.client.consumer_generation_id == generation
                )
        select = None
        if SEALS in places:
            select = SelectPosition.after(seals.select, seals.seeds, standing[SEALS].committed)
            await self.select.resume(select)
        if generation == self.client.consumer_generation_id:
            self._opened(Session(generation, measure, select), places)

    async def _read_seals(self, places: tuple[Place, ...]) -> SealLog:
        end = self.world.log.end(SEALS)
        await Turn()
        seals = self.world.reader.read([partition for topic, partition in places if topic is Topic.ROLLOUTS], end)
        await Turn()
        return seals

    async def _refetch(self, partition: int, offsets: range) -> AsyncIterator[Arrived]:
        """What the log holds at these offsets, a few at a time."""
        place = (Topic.ROLLOUTS, partition)
        for offset in offsets:
            if offset % 3 == 0:
                await Turn()
            value = self.world.log.records[place][offset]
            yield Arrived(Topic.ROLLOUTS.named(PREFIX), partition, offset, value, 1.0)

    def _opened(self, session: Session, places: tuple[Place, ...]) -> None:
        committed = {place: self.world.group.committed.get(place, 0) for place in places}
        self.consumer = Consumer(
            places, dict(committed), {place: set() for place in places}, committed, self.consumer.stale
        )
        self.world.adjust(session, committed)
        self.gate.open(session)
        self.open = True

    def _measure(self) -> bool:
        return not self.sealing.full and self._deliver("measure", Topic.ROLLOUTS, self.measure.take)

    def _select(self) -> bool:
        return self._deliver("select", Topic.SEALS, partial(self.select.take, self))

    def _deliver(self, name: str, topic: Topic, take: Callable[[Any], Coroutine[Any, Any, None]]) -> bool:
        if name in self.tasks or not self.open:
            return False
        delivered = self._stale(topic) or self._next(topic)
        if delivered is None:
            return False
        self.tasks[name] = Task(take(delivered))
        self._go(name)
        return True

    def _stale(self, topic: Topic) -> Delivered | None:
        stale = self.consumer.stale.get(topic)
        return stale.pop(0) if stale else None

    def _next(self, topic: Topic) -> Delivered | None:
        consumer, log = self.consumer, self.world.log
        positions, records = consumer.positions, log.records
        waiting = [place for place in consumer.places if place[0] is topic and positions[place] < len(records[place])]
        if not waiting:
            return None
        place = self.world.rng.choice(waiting) if len(waiting) > 1 else waiting[0]
        offset = consumer.positions[place]
        consumer.positions[place] = offset + 1
        return self._message(place, offset)

    def _message(self, place: Place, offset: int) -> Delivered:
        generation, (topic, partition) = self.client.consumer_generation_id, place
        value = self.world.log.records[place][offset]
        return Delivered(Message(generation, topic.named(PREFIX), partition, offset, value), place)

    def _commit(self) -> bool:
        """Commits what is acknowledged without a gap. A refusal tells a deaf worker that it is alone."""
        consumer, moved = self.consumer, False
        for place, acked in consumer.acked.items():
            if not acked:
                continue
            before = offset = consumer.committed[place]
            while offset in acked:
                offset += 1
            if offset == before:
                continue
            moved = True
            if self.world.faults.commit_lost():
                continue
            acked.difference_update(range(before, offset))
            consumer.committed[place] = offset
            if not self.world.commit(self.name, self.client.consumer_generation_id, place, offset):
                self.world.join(self)
                break
        return moved

    def _listen(self) -> bool:
        if self.deaf and self.world.rng.random() < 0.1:
            self.world.join(self)
            return True
        return False
