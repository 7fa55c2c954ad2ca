"""One schedule: everything that takes part, in one thread, and a seeded choice of who acts next.

    learners -> assignments -> rollouts -> rods.rollouts -> streams workers -> seals -> learners
    streams workers -> seeds -> synthesis -> pool -> learners

Things go wrong while the learner trains. Then whoever is paused wakes, everything is delivered, and the log is final.
"""

from collections import Counter
from random import Random
from typing import Any

from schemas.envelope import Producer, stamp
from schemas.pool import Decision, OperatorDecided
from schemas.rules import Rules
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed
from schemas.topics import Topic
from streams.service.session import Session
from tests.simulation.faults import Faults
from tests.simulation.learner_process import LearnerProcess
from tests.simulation.log import SEALS, Group, Log, Network, Place, Send
from tests.simulation.mutants import Mutant
from tests.simulation.outcomes import RUN
from tests.simulation.producers import Rollouts, Synthesis
from tests.simulation.schedule import WORLDS, Schedule, setting_of
from tests.simulation.seal_reader import SealReader
from tests.simulation.streams_worker import StreamsWorker
from tests.simulation.wire import Wire

MAX_TICKS = 20_000
STALLED = 60
SHOWN = ("generation", "epoch", "step", "partition", "chunk", "chunks", "group", "execution", "task", "seed", "nonce")


class ViolationError(AssertionError):
    """What must never happen has happened."""


class World:
    """Owns the clock, the log and everybody. mutant: the rule that is broken. written: records so far."""

    def __init__(self, schedule: Schedule, trace: bool = False, mutant: Mutant | None = None) -> None:
        self.schedule, self.tracing = schedule, trace
        self._adjust = mutant.adjust if mutant else None
        self.impatient = mutant is not None and mutant.impatient
        self.rng = Random(f"world-{schedule.seed}")
        self.log = Log(schedule.setting.partitions)
        self.reader = SealReader(self.log)
        self.written = 0
        self._actors: tuple[Any, ...] = ()
        self.network, self.group, self.wire = Network(), Group(), Wire(schedule.codec)
        self.now = 1
        self.disturbed = schedule.faults > 0
        self.workers: dict[str, StreamsWorker] = {}
        self.learners: dict[str, LearnerProcess] = {}
        self.started = 0
        self.covered = dict.fromkeys(range(self.log.partitions), 0)
        self._chunks: dict[tuple[int, int, str], set[int]] = {}
        self._seeds: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.finished = False
        self.rollouts, self.synthesis = Rollouts(self), Synthesis(self)
        self.faults = Faults(self)

    # What happens

    def run(self) -> None:
        """Raises ViolationError, and whatever the real code raises."""
        for _ in range(self.schedule.workers):
            self.start_worker()
        self.rebalance()
        self.start_learner()
        self.train()
        self.drain()
        if self.schedule.successor:
            self.succeed()

    def train(self) -> None:
        """Until a learner has trained all epochs."""
        stalled = stalls = 0
        while not self.finished:
            self.now += 1
            if self.now > MAX_TICKS:
                raise ViolationError("the run does not come to an end")
            if self.tick():
                stalled = stalls = 0
                continue
            stalled += 1
            if stalled >= STALLED:
                stalled, stalls = 0, stalls + 1
                self._unblock(stalls)

    def tick(self) -> bool:
        """Somebody, drawn by lot, does something; False where whoever was drawn has nothing to do."""
        if self.faults.left and self.rng.random() < self.schedule.fault_rate:
            self.faults.strike()
            return True
        choice = self.rng.random()
        if choice < 0.3:
            return self._deliver()
        if choice < 0.42:
            return self.rollouts.step()
        if choice < 0.5:
            return self.synthesis.step()
        actors = self._actors
        actor = actors[int(self.rng.random() * len(actors))] if actors else None
        return actor is not None and not actor.paused and not actor.done and bool(actor.step())

    def _deliver(self) -> bool:
        if not self.network.queues:
            return False
        queues = list(self.network.queues)
        key = queues[int(self.rng.random() * len(queues))]
        if self._is_paused(key[0]) and self.rng.random() < 0.9:
            return False
        send = self.network.take(key)
        send.offset = self._append(key[0], key[1], send.value)
        if key[1] == SEALS:
            self.faults.sealed(key[0], send.value)
        if self.rng.random() < self.schedule.retries:
            self._append(key[0], key[1], send.value)
        return True

    def _is_paused(self, sender: str) -> bool:
        process: Any = self.workers.get(sender) or self.learners.get(sender)
        return process is not None and process.paused

    def _unblock(self, stalls: int) -> None:
        """Nobody can go on: time passes until somebody can."""
        if stalls > 20:
            raise ViolationError("nobody can go on")
        self.trace("-: nobody can go on (%d)", stalls)
        if not self._recovered() and not self.schedule.exact:
            for learner in self.active_learners():
                if learner.hurried:
                    learner.hurry()

    def _recovered(self) -> bool:
        """Whether something was left that ends by itself: what is late comes, who sleeps wakes, who is gone is
        replaced."""
        held = bool(self.rollouts.held or self.synthesis.held)
        self.rollouts.release()
        self.synthesis.release()
        asleep = self.wake_all()
        self.wire.upgraded = True
        self.faults.restart_all_stopped()
        if not self.active_workers():
            self.start_worker()
        if not self.active_learners():
            self.start_learner()
        alone = {worker.name for worker in self.active_workers()} != set(self.group.members)
        if alone:
            self.rebalance()
        return held or asleep or alone

    def drain(self) -> None:
        """The learner is done. What is late arrives, who is paused wakes, all is read to its end."""
        self.trace("-: the run is over; everything late arrives")
        self.disturbed = False
        self.wire.upgraded = True
        self.rollouts.release()
        self.synthesis.release()
        self.wake_all()
        if not self.active_workers():
            self.start_worker()
        self.faults.restart_all_stopped()
        self.rebalance()
        self.sweep()

    def succeed(self) -> None:
        """Every worker dies; a fresh one takes over."""
        for name in list(self.workers):
            self.kill_worker(name)
        self.start_worker()
        self.rebalance()
        self.sweep()

    def sweep(self) -> None:
        """Until nobody has anything to do."""
        quiet = 0
        for _ in range(MAX_TICKS):
            self.now += 1
            actors: list[Any] = [*self.active_workers(), *self.active_learners(), self.rollouts, self.synthesis]
            busy = [actor.step() for actor in actors]
            busy.append(self._deliver())
            quiet = 0 if any(busy) else quiet + 1
            if quiet > 3:
                return self._assert_idle()
        raise ViolationError("the streams do not come to rest")

    def _assert_idle(self) -> None:
        for worker in self.workers.values():
            if not worker.idle:
                raise ViolationError(f"{worker.name} waits for ever")
        for place, _ in self._sources():
            covered = self.covered[place[1]] if place[0] is Topic.ROLLOUTS else self.log.end(place)
            if self.group.committed.get(place, 0) < covered:
                raise ViolationError(f"{place} is done and not committed")

    # Who takes part

    def active_workers(self) -> list[StreamsWorker]:
        return [worker for worker in self.workers.values() if not worker.paused]

    def active_learners(self) -> list[LearnerProcess]:
        return [learner for learner in self.learners.values() if not learner.paused and not learner.done]

    def start_worker(self) -> StreamsWorker:
        self.started += 1
        worker = StreamsWorker(self, f"worker-{self.started}")
        self.workers[worker.name] = worker
        self._take_stock()
        self.trace("%s: starts", worker.name)
        return worker

    def kill_worker(self, name: str) -> None:
        self.trace("%s: dies", name)
        self.workers.pop(name).die()
        self._take_stock()
        self.network.cut(name, self.rng)

    def start_learner(self) -> LearnerProcess:
        self.started += 1
        learner = LearnerProcess(self, f"learner-{self.started}", self._rules())
        self.learners[learner.name] = learner
        self._take_stock()
        self.trace("%s: starts", learner.name)
        return learner

    def _rules(self) -> Rules:
        """What a learner is configured with: where digests may differ, sometimes not what the one before was."""
        rules = self.schedule.setting.rules
        if self.schedule.exact or self.rng.random() < 0.7:
            return rules
        other = setting_of(self.rng.randrange(WORLDS)).rules
        return other.model_copy(update={"seed": rules.seed, "epochs": rules.epochs})

    def kill_learner(self, name: str) -> None:
        self.trace("%s: dies", name)
        self.learners.pop(name).die()
        self._take_stock()
        self.network.cut(name, self.rng)

    def _take_stock(self) -> None:
        self._actors = (*self.workers.values(), *self.learners.values())

    def wake_all(self) -> bool:
        """Whether anybody slept."""
        asleep = False
        processes: list[Any] = [*self.workers.values(), *self.learners.values()]
        for process in processes:
            if process.paused:
                self.trace("%s: wakes", process.name)
                process.paused, asleep = False, True
        return asleep

    def rebalance(self, without: str = "") -> None:
        """The group makes a new generation of those that take part; the others do not notice yet."""
        members = [worker for worker in self.active_workers() if worker.name != without]
        self.group.generation += 1
        shares: dict[str, list[Place]] = {worker.name: [] for worker in members}
        for number, (place, _) in enumerate(self._sources()):
            if members:
                shares[members[(number + self.group.generation) % len(members)].name].append(place)
        self.group.members = {name: tuple(places) for name, places in shares.items()}
        for worker in self.workers.values():
            worker.deaf = worker.name not in shares
        for worker in members:
            worker.revoke(self.group.generation, self.group.members[worker.name])
        self.trace("-: generation %d of the group: %s", self.group.generation, self.group.members)

    def join(self, worker: StreamsWorker) -> None:
        """A worker notices that the group went on without it, and joins."""
        self.trace("%s: joins again", worker.name)
        self.rebalance()

    def _sources(self) -> list[tuple[Place, int]]:
        rollouts = [((Topic.ROLLOUTS, partition), partition) for partition in range(self.log.partitions)]
        return [*rollouts, (SEALS, 0)]

    def adjust(self, session: Session, committed: dict[Place, int]) -> None:
        """What a broken recovery does to a session before it opens."""
        if self._adjust is not None:
            self._adjust(session, committed)

    # What is written

    def post(self, sender: str, place: Place, event: Any) -> Send:
        """Puts an event on its way."""
        return self.network.post(sender, place, self.wire.encode(event))

    def put(self, place: Place, event: Any) -> None:
        """Writes an event at once."""
        self._append("producers", place, self.wire.encode(event))

    def put_raw(self, place: Place, value: Any) -> None:
        """Writes what may be no event."""
        self._append("somebody", place, value)

    def _append(self, sender: str, place: Place, value: Any) -> int:
        offset = self.log.append(place, value)
        self.written += 1
        if self.tracing:
            self.trace("%s: %s", sender, described(place, offset, self.wire, value))
        if place == SEALS or place[0] is Topic.SEEDS:
            self._note(self.wire.read(value))
        return offset

    def _note(self, event: Any) -> None:
        if isinstance(event, PartitionSealed):
            chunks = self._chunks.setdefault((event.step, event.partition, event.digest), set())
            chunks.add(event.chunk)
            if len(chunks) == event.chunks:
                self.covered[event.partition] = max(self.covered[event.partition], event.barrier_offset + 1)
        elif isinstance(event, BoundarySeedSelected):
            self._seeds.add(event.seed)

    def commit(self, member: str, generation: int, place: Place, offset: int) -> bool:
        """A commit; False where the group has moved on. Raises ViolationError where it covers what is not written."""
        before = self.group.committed.get(place, 0)
        if not self.group.commit(member, generation, place, offset):
            self.trace("%s: its commit of %s is refused", member, place)
            self.seen["refused commit"] += 1
            return False
        self.trace("%s: commits %s up to %d", member, place, offset)
        if place[0] is Topic.ROLLOUTS and offset > self.covered[place[1]]:
            raise ViolationError(f"{member} committed {place} up to {offset}, beyond every acknowledged seal")
        if place == SEALS:
            self._assert_planted(self.log.records[SEALS][before:offset])
        return True

    def _assert_planted(self, values: list[Any]) -> None:
        for event in map(self.wire.read, values):
            if isinstance(event, SelectionClosed) and any(seed.seed not in self._seeds for seed in event.seeds):
                raise ViolationError(f"the selection of step {event.step} was committed before its seeds were written")

    def operate(self) -> None:
        """A person decides about a task."""
        tasks = [task.task for task in self.schedule.setting.originals]
        known = [learner.learner.pool.definitions for learner in self.learners.values()]
        tasks += [task for definitions in known for task in definitions]
        order = OperatorDecided(
            f"order-{self.now}", self.rng.choice(tasks), self.rng.choice(tuple(Decision)), "ada", "because"
        )
        self.put((Topic.POOL, 0), stamp(order, run_id=RUN, occurred_at=self.now, producer=Producer.OPERATOR))

    def trace(self, text: str, *values: object) -> None:
        if self.tracing:
            print(f"{self.now:6d} {text % values}")


def described(place: Place, offset: int, wire: Wire, value: Any) -> str:
    """A record in a few words."""
    try:
        event = wire.decode(value)
    except Exception as error:  # noqa: BLE001 - only a person reads it
        return f"{place[0].value}/{place[1]}@{offset} {type(error).__name__}"
    names = (
        "generation",
        "epoch",
        "step",
        "partition",
        "chunk",
        "chunks",
        "group",
        "execution",
        "task",
        "seed",
        "nonce",
    )
    shown = [f"{name}={str(getattr(event, name))[:10]}" for name in names if hasattr(event, name)]
    digest = getattr(event, "digest", "")
    return f"{place[0].value}/{place[1]}@{offset} {event.KIND} {' '.join(shown)} {digest[:8]}"
