"""What goes wrong while a learner trains."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from schemas.seals import SelectionClosed
from schemas.topics import Topic
from tests.simulation.log import SEALS, Place
from tests.simulation.outcomes import made_up
from tests.simulation.wire import FromTheFuture

if TYPE_CHECKING:
    from tests.simulation.world import World

MAX_WORKERS = 4
MAX_LEARNERS = 4
JUNK = (b"", b"junk", b"\xc3\x01short", b"\xc3\x01" + bytes(8))


class Faults:
    """Strikes the world, one fault at a time. Those that change what is decided spare exact schedules."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.left = world.schedule.faults
        self._commit_fails = False
        self._doomed = 0
        everywhere: list[Callable[[], None]] = [
            self.kill_worker,
            self.kill_worker,
            self.pause_worker,
            self.pause_worker,
            self.wake_worker,
            self.deafen_worker,
            self.rebalance,
            self.join_worker,
            self.kill_learner,
            self.pause_learner,
            self.wake_learner,
            self.second_learner,
            self.junk,
            self.repeat,
            self.commit_ahead,
            self.fail_commit,
            self.make_up,
            self.doom_selectors,
        ]
        decisive: list[Callable[[], None]] = [self.deadline, self.deadline, self.operate, self.future]
        self._kinds = everywhere if world.schedule.exact else everywhere + decisive

    def strike(self) -> None:
        self.left -= 1
        self.world.rng.choice(self._kinds)()

    def kill_worker(self) -> None:
        workers = self.world.workers
        if workers:
            self.world.kill_worker(self.world.rng.choice(list(workers)))
            if self.world.rng.random() < 0.6:
                self.world.rebalance()

    def pause_worker(self) -> None:
        active = self.world.active_workers()
        if active:
            worker = self.world.rng.choice(active)
            worker.paused = True
            self.world.trace("%s: is paused", worker.name)
            if self.world.rng.random() < 0.7:
                self.world.rebalance()

    def wake_worker(self) -> None:
        self._wake(self.world.workers.values())

    def deafen_worker(self) -> None:
        """The group goes on without a worker that goes on as well."""
        active = self.world.active_workers()
        if active:
            if len(active) == 1 and len(self.world.workers) < MAX_WORKERS:
                self.world.start_worker()
            self.world.rebalance(without=active[0].name)

    def rebalance(self) -> None:
        self.world.rebalance()

    def join_worker(self) -> None:
        if len(self.world.workers) < MAX_WORKERS:
            self.world.start_worker()
            self.world.rebalance()

    def kill_learner(self) -> None:
        active = self.world.active_learners()
        if active:
            self.world.kill_learner(self.world.rng.choice(active).name)

    def pause_learner(self) -> None:
        active = self.world.active_learners()
        if active:
            learner = self.world.rng.choice(active)
            learner.paused = True
            self.world.trace("%s: is paused", learner.name)
            if self.world.rng.random() < 0.5:
                self.second_learner()

    def wake_learner(self) -> None:
        self._wake(self.world.learners.values())

    def _wake(self, processes: Iterable[Any]) -> None:
        """The first that is paused."""
        for process in processes:
            if process.paused:
                process.paused = False
                self.world.trace("%s: wakes", process.name)
                return

    def second_learner(self) -> None:
        living = [learner for learner in self.world.learners.values() if not learner.done]
        if len(living) < MAX_LEARNERS and self.world.started < 40:
            self.world.start_learner()

    def deadline(self) -> None:
        for learner in self.world.active_learners():
            if learner.hurried:
                self.world.trace("%s: a deadline passes", learner.name)
                learner.hurry()

    def operate(self) -> None:
        self.world.operate()

    def junk(self) -> None:
        """Bytes that are no event."""
        places = [place for place in self.world.log.records if place[0] in (Topic.ROLLOUTS, Topic.SEALS, Topic.POOL)]
        self.world.put_raw(self.world.rng.choice(places), self.world.rng.choice(JUNK[:3]))

    def repeat(self) -> None:
        """A record of a partition stands there again, as a retry or a replayed dead letter does."""
        log, rng = self.world.log, self.world.rng
        places = [place for place in log.records if place[0] is Topic.ROLLOUTS and log.records[place]]
        if places:
            place = rng.choice(places)
            self.world.put_raw(place, rng.choice(log.records[place]))

    def make_up(self) -> None:
        """Somebody writes a variant of a seed that nobody selected."""
        rng = self.world.rng
        variant = made_up(rng.randrange(100), rng.randrange(4), rng.randrange(5))
        self.world.put((Topic.POOL, 0), variant)

    def commit_ahead(self) -> None:
        """The framework commits past events in flight, and the group begins anew behind them."""
        world, number = self.world, self.world.rng.randrange(self.world.log.partitions + 1)
        place = (Topic.ROLLOUTS, number) if number < world.log.partitions else SEALS
        self._commit(place, world.group.committed.get(place, 0) + world.rng.randint(1, 5))
        world.rebalance()

    def _commit(self, place: Place, offset: int) -> None:
        committed = self.world.group.committed
        committed[place] = min(offset, self.world.log.end(place))
        self.world.trace("-: %s is committed up to %d, whatever is done", place, committed[place])

    def doom_selectors(self) -> None:
        """The next two workers whose selection reaches the log die of it, and the commits run ahead of their seeds."""
        self._doomed = 2

    def sealed(self, sender: str, value: object) -> None:
        """Looks at what has reached the seals."""
        if not self._doomed or SEALS not in self.world.group.members.get(sender, ()):
            return
        if isinstance(self.world.wire.read(value), SelectionClosed):
            self._doomed -= 1
            self._commit(SEALS, self.world.log.end(SEALS))
            if sender in self.world.workers:
                self.world.kill_worker(sender)

    def fail_commit(self) -> None:
        """The next commit does not reach the broker; its worker tries again."""
        self._commit_fails = True

    def commit_lost(self) -> bool:
        """Whether the commit at hand fails."""
        lost, self._commit_fails = self._commit_fails, False
        return lost

    def future(self) -> None:
        """The next result comes in a schema that no worker knows yet."""
        if not self.world.wire.upgraded and self.world.rollouts.ready:
            place, events = self.world.rollouts.ready.pop()
            self.world.put_raw(place, FromTheFuture(events.pop(0)))
            if events:
                self.world.rollouts.ready.append((place, events))

    def restart_all_stopped(self) -> None:
        """The readers are upgraded: workers that stopped at what they did not know are started anew."""
        for name in list(self.world.workers):
            if self._stopped(name):
                self.world.kill_worker(name)
                self.world.start_worker()

    def _stopped(self, name: str) -> bool:
        session = self.world.workers[name].gate._session
        return session is not None and any(position.stopped for position in session.measure.values())
