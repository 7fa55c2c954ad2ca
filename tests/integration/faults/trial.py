"""One whole run as real processes under a supervisor, hit by the faults of a schedule, and the log that it leaves."""

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from eventlog.reader import LogRecord, LogTail, read_all
from rods.brokers.embedded import EmbeddedBroker, create_topics
from rods.brokers.kafka import KafkaBroker
from rods.brokers.process import claim_port
from rods.brokers.topic_admin import TopicAdmin
from rods.brokers.topics_file import TopicSpec
from rods.run_folder import RunFolder
from rods.settings import KAFKA, Settings, load_settings, merged, parse_assignment, write_resolved
from rods.supervise import RestartLimits, Supervisor, WorkerSpec, WorkerState
from rods.wiring import worker_specs
from schemas.codec import decode
from schemas.epochs import LearnerStarted
from schemas.errors import UndecodableError
from schemas.topics import Topic
from streams.archive.worker import ArchiveSettings, archive_until
from tests.integration.faults.aside import aside
from tests.integration.faults.courier import Courier
from tests.integration.faults.meddler import Meddler
from tests.integration.faults.schedule import WORKERS, Action, Fault, Schedule

PARTITIONS = 3
PREFIX = "rods."
SMALL = (
    "rules.pool_tasks=18",
    "rules.epochs=3",
    "rules.rollout.k=4",
    "rules.rollout.tasks_per_step=9",
    "rules.rollout.deadline_seconds=300",
    "rules.synthesis.settle_seconds=300",
    "rules.select.quota=2",
    "rules.learner.evaluate_tasks=0",
    "rules.pool.inject_share=0.5",
    "rules.synthesis.variants_per_seed=1",
)
"""Small enough to be over in seconds, large enough to inject and retire; deadlines that no disturbance reaches."""
IMPATIENT = ("rules.rollout.deadline_seconds=6",)
PATIENCE = RestartLimits(restarts=1000, last_pause=0.5)
LIMIT_SECONDS = 480.0
TRIGGERS = (
    "StepOpened", "GroupRequested", "TrajectoryRecorded", "RolloutFinished", "TaskMeasured", "BarrierReached",
    "PartitionSealed", "SelectionClosed", "BoundarySeedSelected", "StageFinished", "VariantVerified", "SeedSettled",
)  # fmt: skip


_ONE = {"rollouts": "rollout"}


class TrialError(AssertionError):
    """A run that the faults kept from its end."""


class TooLateError(TrialError):
    """A fault that found what it was to strike at its end."""


@dataclass(slots=True)
class Trial:
    """What a run has left. log: topic and partition to its records.

    struck: the faults that did what they say, by kind; unfired: those that came too late.
    """

    folder: Path
    log: dict[tuple[Topic, int], list[LogRecord]] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    fired: list[str] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    unfired: list[str] = field(default_factory=list)
    deaths: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def archive(self) -> Path:
        return RunFolder(self.folder).archive


async def run_trial(folder: Path, broker: str, plan: Schedule) -> Trial:
    """Runs to the learner's end, whatever the plan does meanwhile. Raises TrialError."""
    began = time.monotonic()
    with _broker(broker, folder) as served:
        settings = _settings(folder, served.address, IMPATIENT if plan.held else ())
        specs = await create_topics(served.address, PREFIX, PARTITIONS)
        if plan.held:
            await _create_aside(served.address, specs)
        running = _Running(served, settings, plan, Trial(folder))
        await running.run()
        await _archive_the_rest(running.trial, served.address)
        running.trial.log = await final_log(served.address)
    running.trial.seconds = time.monotonic() - began
    return running.trial


async def _archive_the_rest(trial: Trial, address: str) -> None:
    """The archiver goes on from its manifest: a loaded machine may not have given it the time to drain at its stop."""
    stopping = asyncio.Event()
    stopping.set()
    await archive_until(ArchiveSettings(address, PREFIX, PARTITIONS, trial.archive, drain_seconds=240.0), stopping)


async def final_log(address: str) -> dict[tuple[Topic, int], list[LogRecord]]:
    """Every record of every topic-partition."""
    return {
        (topic, number): [record async for record in read_all(address, topic.named(PREFIX), number)]
        for topic in Topic
        for number in range(PARTITIONS if topic.by_task else 1)
    }


@contextmanager
def _broker(broker: str, folder: Path) -> "Iterator[EmbeddedBroker | KafkaBroker]":
    log_file = folder / "logs" / "broker.log"
    folder.mkdir(parents=True, exist_ok=True)
    port = claim_port(0)
    with KafkaBroker(folder / "kafka", log_file, port) if broker == KAFKA else EmbeddedBroker(log_file) as served:
        yield served


async def _create_aside(address: str, specs: Sequence[TopicSpec]) -> None:
    async with TopicAdmin(address) as admin:
        await admin.create([replace(spec, name=aside(PREFIX)) for spec in specs if spec.topic is Topic.ROLLOUTS])


def _settings(folder: Path, address: str, more: Sequence[str]) -> Settings:
    flags: dict[str, Any] = {"policy": "scripted", "broker": address, "folder": str(folder), "run_id": folder.name}
    flags |= {f"{_ONE.get(service, service)}_workers": n for service, n in WORKERS.items() if service != "archive"}
    flags |= {"partitions": PARTITIONS, "prefix": PREFIX}
    for assignment in (*SMALL, *more):
        flags = merged(flags, parse_assignment(assignment))
    settings = load_settings(None, flags)
    write_resolved(settings, RunFolder(folder).settings)
    return settings


class _Running:
    """The supervised processes, the watcher of the log, and the faults."""

    def __init__(
        self, broker: "EmbeddedBroker | KafkaBroker", settings: Settings, plan: Schedule, trial: Trial
    ) -> None:
        self.broker, self.settings, self.plan, self.trial = broker, settings, plan, trial
        specs = [_patient(spec) for spec in worker_specs(settings, RunFolder(trial.folder).settings)]
        specs = [_aside(spec) if plan.held else spec for spec in specs if spec.name != "warehouse"]
        self.supervisor = Supervisor(specs)
        self.waiting, self.too_late = list(plan.faults), list[Fault]()
        self.striking: set[asyncio.Task[None]] = set()
        self.watching = False

    async def run(self) -> None:
        meddler = Meddler(self.settings.broker, PREFIX, PARTITIONS, self.plan)
        courier = Courier(self.settings.broker, PREFIX, PARTITIONS, self.plan)
        works = [self._watch(), meddler.run(), *([courier.run()] if self.plan.held else [])]
        around = [asyncio.create_task(work) for work in works]
        try:
            await self._watched(around, meddler)
            async with self.supervisor:
                await self._to_its_end(around)
                await _ended(around)
        finally:
            await _ended(around)
        self.trial.deaths = {name: count for name, count in self.supervisor.deaths.items() if count}
        self.trial.unfired = [str(fault) for fault in (*self.waiting, *self.too_late)]
        self.trial.struck += meddler.done

    async def _watched(self, around: "list[asyncio.Task[None]]", meddler: Meddler) -> None:
        """The run is over in seconds: it begins when it is watched."""
        while not (self.watching and meddler.following):
            _raise_failed(around)
            await asyncio.sleep(0.02)

    async def _to_its_end(self, around: "list[asyncio.Task[None]]") -> None:
        dying = asyncio.create_task(self.supervisor.watch())
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await self._finished([*around, dying])
                await asyncio.gather(*self.striking)
        except TimeoutError:
            raise TrialError(self._story("did not end")) from None
        finally:
            dying.cancel()

    async def _finished(self, around: "list[asyncio.Task[None]]") -> None:
        while self.supervisor.states["learner"] is not WorkerState.FINISHED:
            _raise_failed((*around, *self.striking))
            await asyncio.sleep(0.1)

    async def _watch(self) -> None:
        """Counts events and strikes at the right ones."""
        places = [(topic.named(PREFIX), n) for topic in Topic for n in range(PARTITIONS if topic.by_task else 1)]
        async with LogTail(self.settings.broker, dict.fromkeys(places, 0)) as tail:
            self.watching = True
            while True:
                for record in await tail.poll(0.2):
                    with suppress(UndecodableError):
                        self.trial.seen[decode(record.value or b"").KIND] += 1
                    self._strike()

    def _strike(self) -> None:
        for fault in [fault for fault in self.waiting if self.trial.seen[fault.kind] >= fault.nth]:
            self.waiting.remove(fault)
            self.trial.fired.append(str(fault))
            self.striking.add(asyncio.create_task(self._hit(fault)))

    async def _hit(self, fault: Fault) -> None:
        try:
            if await self._strikes(fault):
                self.trial.struck[fault.blow] += 1
        except TooLateError:
            self.too_late.append(fault)

    async def _strikes(self, fault: Fault) -> bool:
        """Whether it did what it says: a process ended, stood still or was superseded."""
        match fault.action:
            case Action.KILL:
                return await self._kill(fault.process)
            case Action.PAUSE:
                return await _paused(await self._pid(fault.process), fault.seconds)
            case Action.USURP:
                return await self._usurp(fault.seconds)
            case Action.BROKER:
                return await self._broker(fault.seconds)

    async def _pid(self, name: str) -> int:
        while name not in self.supervisor.pids:
            if self.supervisor.states[name].over:
                raise TooLateError(self._story(f"had no {name} to strike"))
            await asyncio.sleep(0.05)
        return self.supervisor.pids[name]

    async def _kill(self, name: str) -> bool:
        pid, deaths = await self._pid(name), self.supervisor.deaths[name]
        _signal(pid, signal.SIGKILL)
        while self.supervisor.deaths[name] == deaths:
            await asyncio.sleep(0.05)
        return True

    async def _usurp(self, seconds: float) -> bool:
        """A second learner works while the first is paused; then the first wakes, finds itself superseded and ends."""
        first = await self._pid("learner")
        _signal(first, signal.SIGSTOP)
        try:
            second = await self._second_learner(await self._generation())
            await asyncio.sleep(seconds)
        finally:
            _signal(first, signal.SIGCONT)
        try:
            await second.wait()
            while self.supervisor.pids.get("learner") == first:
                await asyncio.sleep(0.05)
        finally:
            if second.returncode is None:
                second.kill()
        return True

    async def _second_learner(self, generation: int) -> asyncio.subprocess.Process:
        """A learner that has taken over from a generation. Raises TrialError where it ends without."""
        command = [sys.executable, "-m", "rods", "learn", "--settings", str(RunFolder(self.trial.folder).settings)]
        with (RunFolder(self.trial.folder).logs / "second-learner.log").open("ab") as log:
            second = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        while await self._generation() <= generation:
            if second.returncode is not None:
                raise TrialError(self._story(f"had no second learner: it ended with {second.returncode}"))
            await asyncio.sleep(0.1)
        return second

    async def _generation(self) -> int:
        """The newest learner's, at the log's end now."""
        records = [record async for record in read_all(self.settings.broker, Topic.EPOCHS.named(PREFIX), 0)]
        events = [decode(record.value or b"") for record in records]
        return max((event.generation for event in events if isinstance(event, LearnerStarted)), default=0)

    async def _broker(self, seconds: float) -> bool:
        pid = self.broker.pid
        assert pid is not None
        if isinstance(self.broker, EmbeddedBroker):
            return await _paused(pid, seconds)
        _signal(pid, signal.SIGKILL)
        await asyncio.to_thread(self._await_broker_end)
        await asyncio.sleep(seconds)
        self.broker.__enter__()
        return True

    def _await_broker_end(self) -> None:
        while self.broker.alive:
            time.sleep(0.05)

    def _story(self, what: str) -> str:
        states = {name: str(state) for name, state in self.supervisor.states.items()}
        return f"schedule {self.plan.seed} {what}: fired {self.trial.fired}, seen {dict(self.trial.seen)}, {states}"


async def _ended(tasks: "Iterable[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _raise_failed(tasks: "Iterable[asyncio.Task[None]]") -> None:
    for task in tasks:
        if task.done():
            task.result()


def _patient(spec: WorkerSpec) -> WorkerSpec:
    return replace(spec, limits=PATIENCE)


def _aside(spec: WorkerSpec) -> WorkerSpec:
    """A rollout worker writes its results aside; the others are as they were."""
    if spec.command[3] != "rollouts":
        return spec
    return replace(spec, command=(sys.executable, "-m", "tests.integration.faults.aside", *spec.command[5:]))


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


async def _paused(pid: int, seconds: float) -> bool:
    """Whether it stood still for so long. One that ends meanwhile did not."""
    _signal(pid, signal.SIGSTOP)
    try:
        stood = await _stands_still(pid)
        await asyncio.sleep(seconds)
    finally:
        _signal(pid, signal.SIGCONT)
    return stood


async def _stands_still(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        while (status := psutil.Process(pid).status()) != psutil.STATUS_STOPPED:
            if status == psutil.STATUS_ZOMBIE:
                return False
            await asyncio.sleep(0.01)
        return True
    return False
