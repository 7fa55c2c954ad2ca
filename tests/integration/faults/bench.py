"""Streams workers under a supervisor on a live broker, with a learner and rollout workers played by the test."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from eventlog.client import log_producer
from eventlog.reader import LogRecord, LogTail, end_offsets, read_all
from rods.brokers.embedded import create_topics
from rods.errors import UserError
from rods.supervise import RestartLimits, Supervisor, WorkerSpec
from schemas.codec import encode
from schemas.identity import group_id
from schemas.seals import SelectionClosed
from schemas.topics import Topic, partition_of
from tests.integration.faults.verdict import Log, assert_no_result_lost, assert_streams_right, decoded, derived
from tests.integration.faults.worker import STACKS
from tests.integration.holding import Holding, held, share
from tests.streams.rollout_log import barrier, expected, result, started

HANG_SECONDS = 240.0
"""What hangs fails."""
ACCOUNT_CHARS = 12_000
LIMITS = RestartLimits(restarts=8)


@dataclass(slots=True)
class Worker:
    """A supervised process. `deaths` counts its uninvited ends. sign: where its fault's files are."""

    supervisor: Supervisor
    log_file: Path
    sign: Path

    @property
    def pid(self) -> int:
        return self.supervisor.pids["streams"]

    @property
    def deaths(self) -> int:
        return self.supervisor.deaths["streams"]

    @property
    def held(self) -> Holding | None:
        """What it has of the group now; None during a rebalance and while it does not run."""
        return held(self.sign.with_suffix(".held"), self.supervisor.pids.get("streams"))

    @property
    def fired(self) -> list[str]:
        """A line for each time that its fault happened."""
        file = self.sign.with_suffix(".fired")
        return file.read_text().splitlines() if file.exists() else []

    @property
    def committing(self) -> bool:
        """Whether a commit that its fault holds up is on its way."""
        return self.sign.with_suffix(".committing").exists()

    @property
    def stopped(self) -> bool:
        """Whether it stands still by a signal."""
        return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def account(self) -> str:
        """What it is and the end of what it wrote, with the stacks of a process that runs."""
        pid = self.supervisor.pids.get("streams")
        if pid is not None:
            os.kill(pid, STACKS)
            await asyncio.sleep(1.0)
        said = self.log_file.read_text()[-ACCOUNT_CHARS:]
        return f"{self.log_file.stem}: pid {pid}, {self.deaths} deaths, fired {self.fired}, holds {self.held}\n{said}"

    async def end(self) -> int | None:
        """As an operator would; its exit code."""
        process = self.supervisor._workers["streams"]._process
        await self.supervisor.stop()
        return process.returncode if process else None

    async def until(self, what: Callable[["Worker"], object]) -> None:
        """Waits until something is so. Raises AssertionError where the worker keeps dying meanwhile."""
        async with asyncio.timeout(HANG_SECONDS):
            while not what(self):
                await _alive(self)
                await asyncio.sleep(0.05)

    async def died(self) -> None:
        """Waits until it has ended by itself."""
        async with asyncio.timeout(HANG_SECONDS):
            while not self.deaths:
                await asyncio.sleep(0.1)

    async def kill(self) -> None:
        """As a crash would, for good."""
        pid = self.pid
        self.supervisor._workers["streams"]._stopping.set()
        os.kill(pid, signal.SIGKILL)
        await self.supervisor.stop()


@dataclass(slots=True)
class Bench:
    """One prefix of a broker. Results and barriers go in, and what comes out is held to a plain fold.

    empties: whether the broker can delete records.
    """

    address: str
    prefix: str
    partitions: int
    folder: Path
    producer: AIOKafkaProducer
    stack: AsyncExitStack
    empties: bool
    tasks: tuple[str, ...] = tuple(f"task-{number}" for number in range(24))
    workers: list[Worker] = field(default_factory=list)

    async def start(self, **options: Any) -> Worker:
        """A streams worker. options: of `StreamsSettings`, and fault: a name in `tests.integration.faults.worker`."""
        name = f"worker-{len(self.workers) + 1}"
        sign, log_file = self.folder / f"{name}.sign", self.folder / f"{name}.log"
        settings = {"broker": self.address, "prefix": self.prefix, "partitions": self.partitions, "sign": str(sign)}
        settings |= {"data_dir": str(self.folder / name), **options}
        command = (sys.executable, "-m", "tests.integration.faults.worker", json.dumps(settings))
        supervisor = Supervisor([WorkerSpec("streams", command, log_file, limits=LIMITS)])
        self.workers.append(Worker(await self.stack.enter_async_context(supervisor), log_file, sign))
        return self.workers[-1]

    async def put(self, event: Any, partition: int, topic: Topic = Topic.ROLLOUTS) -> None:
        value = event if isinstance(event, bytes) else encode(event)
        await self.producer.send_and_wait(topic.named(self.prefix), value, partition=partition)

    async def results(self, step: int, tasks: Iterable[str] | None = None) -> None:
        """A result of each task, and most of them again with other outcomes."""
        sent = []
        for task in self.tasks if tasks is None else tasks:
            for passed in (_passed(task, step), (2, 2, 2, 2)):
                value = encode(result(task, passed, step=step))
                partition = partition_of(task, self.partitions)
                sent.append(await self.producer.send(Topic.ROLLOUTS.named(self.prefix), value, partition=partition))
        for ack in sent:
            await ack

    async def barriers(self, step: int, partitions: Iterable[int] | None = None, *, last: bool = False) -> None:
        """A barrier on each partition for all tasks of it."""
        for partition in range(self.partitions) if partitions is None else partitions:
            groups = [expected(task, step=step) for task in self.tasks if self._on(task, partition)]
            event = barrier(*groups, step=step, partition=partition, partitions=self.partitions, last=last)
            await self.put(event, partition)

    async def step(self, step: int, *, last: bool = False) -> None:
        """A whole step, until it is selected."""
        await self.results(step)
        await self.barriers(step, last=last)
        await self.closed(step)

    async def events(self, topic: Topic, enough: Callable[[list[Any]], bool]) -> list[Any]:
        """A topic's events from its start, as soon as there are enough. Fails where a worker keeps dying meanwhile."""
        starts: dict[tuple[str, int], int | None] = dict.fromkeys(self._places(topic))
        found: list[Any] = []
        async with self._guarded(), LogTail(self.address, starts) as tail:
            while not enough(found):
                found += [event for record in await tail.poll(0.2) if (event := decoded(record)) is not None]
                for worker in self.workers:
                    await _alive(worker)
        return found

    async def closed(self, step: int) -> None:
        """Waits for a step's selection."""
        await self.events(
            Topic.SEALS, lambda events: any(isinstance(e, SelectionClosed) and e.step == step for e in events)
        )

    async def shared(self, *workers: Worker) -> None:
        """Waits until these workers are the group: each has a part of the partitions, and their state."""
        async with self._guarded():
            while not share([worker.held for worker in workers], self.partitions):
                for worker in workers:
                    await _alive(worker)
                await asyncio.sleep(0.05)

    async def measured(self, groups: int) -> None:
        """Waits for the views of so many groups."""
        await self.events(Topic.MEASUREMENTS, lambda events: len({event.group for event in events}) >= groups)

    async def commit(self, *, ahead: int = 0) -> None:
        """Joins the group alone and commits the ends of everything, or offsets behind them."""
        ends = await end_offsets(self.address, self.sources)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.address, group_id=f"{self.prefix}streams", enable_auto_commit=False
        )
        consumer.subscribe(list({topic for topic, _ in ends}))
        await consumer.start()
        try:
            while len(consumer.assignment()) < len(ends):
                await consumer.getmany(timeout_ms=100, max_records=1)
            await consumer.commit({TopicPartition(*place): end + ahead for place, end in ends.items()})
        finally:
            await consumer.stop()

    async def log(self) -> Log:
        """Everything that the streams read or write."""
        topics = (Topic.ROLLOUTS, Topic.MEASUREMENTS, Topic.SEALS, Topic.SEEDS, Topic.DEAD_LETTERS)
        found: dict[tuple[Topic, int], list[LogRecord]] = {}
        for topic in topics:
            for name, number in self._places(topic):
                found[topic, number] = [record async for record in read_all(self.address, name, number, None)]
        return found

    async def assert_exact(self, steps: int) -> None:
        """Nothing lost, nothing counted twice, every step selected, every seed written."""
        await self._seeds_written()
        log = await self.log()
        assert_streams_right(log)
        seals = derived(log).seals
        assert_no_result_lost(log, seals)
        assert {seal.step for seal in seals} == set(range(1, steps + 1))
        wanted = {group_id(1, 1, step, task, "train") for step in range(1, steps + 1) for task in self.tasks}
        assert {group.group for seal in seals for group in seal.groups if group.execution} == wanted

    async def _seeds_written(self) -> None:
        """A selection's seeds follow it."""
        chosen = {seed.seed for closed in derived(await self.log()).selections for seed in closed.seeds}
        assert chosen
        await self.events(Topic.SEEDS, lambda events: chosen <= {event.seed for event in events})

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        """Raises AssertionError after `HANG_SECONDS`, with what each worker does and has said."""
        try:
            async with asyncio.timeout(HANG_SECONDS):
                yield
        except TimeoutError as error:
            raise AssertionError("\n\n".join([await worker.account() for worker in self.workers])) from error

    @property
    def sources(self) -> list[tuple[str, int]]:
        """The partitions that the streams read."""
        return [*self._places(Topic.ROLLOUTS), *self._places(Topic.SEALS)]

    def _places(self, topic: Topic) -> list[tuple[str, int]]:
        return [(topic.named(self.prefix), number) for number in range(self.partitions if topic.by_task else 1)]

    def _on(self, task: str, partition: int) -> bool:
        return partition_of(task, self.partitions) == partition


@asynccontextmanager
async def bench(
    address: str, prefix: str, partitions: int, folder: Path, *, empties: bool = False
) -> AsyncIterator[Bench]:
    """A bench with its topics made and the first learner's fence on every partition."""
    await _topics(address, prefix, partitions)
    async with AsyncExitStack() as stack, log_producer(address) as producer:
        made = Bench(address, prefix, partitions, folder, producer, stack, empties)
        for partition in range(partitions):
            await made.put(started(1), partition)
        async with stack:
            yield made


async def _topics(address: str, prefix: str, partitions: int) -> None:
    """Several benches at a time make a loaded broker slow to show what it has made."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            try:
                await create_topics(address, prefix, partitions)
            except UserError:
                await asyncio.sleep(1.0)
            else:
                return


async def _alive(worker: Worker) -> None:
    """Raises WorkerKeepsDyingError, with its last words, where it does not run any more."""
    state = worker.supervisor.states["streams"]
    assert str(state) != "keeps_dying", worker.log_file.read_text()[-3000:]


def _passed(task: str, step: int) -> tuple[int | None, ...]:
    number = int(task.removeprefix("task-"))
    return (number % 3, step % 3, None if number % 5 == 0 else 1, (number + step) % 3)
