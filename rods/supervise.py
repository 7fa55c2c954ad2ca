"""Worker processes of a run on one machine: started, restarted within limits, stopped in order.

A worker that dies, with any exit code or by any signal, starts again after a pause. One that dies more often than its
limits allow ends the run: `watch` raises `WorkerKeepsDyingError` with the worker's last words. Workers lead their own
sessions, so that Ctrl-C in a terminal reaches the supervisor alone, and die with it even when it is killed. Run the
event loop in the main thread: a worker's life is bound to the thread that started it.
"""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType

from rods.exec_with_parent import guarded

STOP_SECONDS = 7.0
_LAST_WORDS_LINES = 20
_LAST_WORDS_BYTES = 16 * 1024


class WorkerState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    KEEPS_DYING = "keeps_dying"
    STOPPED = "stopped"

    @property
    def over(self) -> bool:
        """Whether the worker will not run again."""
        return self in (WorkerState.FINISHED, WorkerState.KEEPS_DYING, WorkerState.STOPPED)


@dataclass(frozen=True, slots=True)
class RestartLimits:
    """At most `restarts` within any `seconds`; the pause doubles from `first_pause` to `last_pause` seconds."""

    restarts: int = 5
    seconds: float = 60.0
    first_pause: float = 0.1
    last_pause: float = 3.0


@dataclass(slots=True)
class RecentDeaths:
    """When a process died, as far as its limits still count it."""

    limits: RestartLimits
    times: deque[float] = field(default_factory=deque)

    def add(self, now: float) -> None:
        """Counts a death. now: seconds of a monotonic clock."""
        self.times.append(now)
        while now - self.times[0] > self.limits.seconds:
            self.times.popleft()

    @property
    def too_many(self) -> bool:
        return len(self.times) > self.limits.restarts

    @property
    def pause(self) -> float:
        """Seconds before the next start."""
        return float(min(self.limits.last_pause, self.limits.first_pause * 2 ** (len(self.times) - 1)))


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A process to keep alive.

    environment: additions to this process's.
    stop_order: lower ones are stopped, and have ended, before higher ones are signalled.
    may_finish: exit code 0 is an end, not a death.
    """

    name: str
    command: tuple[str, ...]
    log_file: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_order: int = 0
    may_finish: bool = False
    limits: RestartLimits = RestartLimits()


@dataclass(frozen=True, slots=True)
class Death:
    """A worker ended uninvited.

    returncode: negative for a signal, as in subprocess.
    deaths: within limits.
    """

    worker: str
    pid: int
    returncode: int
    deaths: int

    @property
    def cause(self) -> str:
        return cause_of(self.returncode)


def cause_of(returncode: int) -> str:
    """What a process died of, in words."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"


class WorkerKeepsDyingError(Exception):
    """A worker died more often than its limits allow. last_words: the last lines of its log."""

    def __init__(self, death: Death, last_words: str) -> None:
        super().__init__(f"the {death.worker} worker keeps dying ({death.cause}, {death.deaths} times)")
        self.death = death
        self.last_words = last_words


class Supervisor:
    """Keeps workers alive inside ``async with``; leaving it stops them all.

    on_death is called for each uninvited end, before the restart, in the event loop; it must not raise.
    """

    def __init__(self, specs: Sequence[WorkerSpec], on_death: Callable[[Death], None] | None = None) -> None:
        if len({spec.name for spec in specs}) != len(specs):
            raise ValueError("worker names must differ")
        self._workers = {spec.name: _SupervisedWorker(spec, on_death) for spec in specs}

    async def __aenter__(self) -> "Supervisor":
        for worker in self._workers.values():
            worker.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the workers that run now."""
        return {name: worker.pid for name, worker in self._workers.items() if worker.pid is not None}

    @property
    def states(self) -> dict[str, WorkerState]:
        return {name: worker.state for name, worker in self._workers.items()}

    @property
    def deaths(self) -> dict[str, int]:
        """Uninvited ends of each worker since the start."""
        return {name: worker.deaths for name, worker in self._workers.items()}

    async def watch(self) -> None:
        """Returns never, unless every worker is over; raises WorkerKeepsDyingError as soon as one keeps dying."""
        await asyncio.gather(*(asyncio.shield(worker.life) for worker in self._workers.values()))

    async def stop(self, seconds: float = STOP_SECONDS, *, below: int | None = None) -> None:
        """SIGTERM by `stop_order`, SIGKILL for those that take longer than their share of `seconds` in all.

        below: stop only the workers whose stop_order is lower. Returns when they have ended; safe to call again.
        """
        orders = sorted({worker.spec.stop_order for worker in self._workers.values()})
        orders = [order for order in orders if below is None or order < below]
        end = time.monotonic() + seconds
        for index, order in enumerate(orders):
            share = max(0.0, end - time.monotonic()) / (len(orders) - index)
            batch = [worker for worker in self._workers.values() if worker.spec.stop_order == order]
            await asyncio.gather(*(worker.stop(share) for worker in batch))


class _SupervisedWorker:
    """One worker's life: a task that starts it, waits for its end and starts it again."""

    def __init__(self, spec: WorkerSpec, on_death: Callable[[Death], None] | None) -> None:
        self.spec = spec
        self.state = WorkerState.WAITING
        self.deaths = 0
        self._on_death = on_death
        self._recent = RecentDeaths(spec.limits)
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self.life: asyncio.Task[None]

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    def begin(self) -> None:
        self.life = asyncio.create_task(self._live(), name=f"supervise {self.spec.name}")

    async def stop(self, seconds: float) -> None:
        self._stopping.set()
        self._signal(signal.SIGTERM)
        _, running = await asyncio.wait((self.life,), timeout=seconds)
        if running:
            self._signal(signal.SIGKILL)
            await asyncio.wait((self.life,))
        if not self.life.cancelled():
            self.life.exception()
        self.state = self.state if self.state.over else WorkerState.STOPPED

    async def _live(self) -> None:
        while not self._stopping.is_set():
            self._process = await self._start()
            self.state = WorkerState.RUNNING
            if self._stopping.is_set():
                self._signal(signal.SIGTERM)
            code = await self._process.wait()
            if self._stopping.is_set():
                return
            if code == 0 and self.spec.may_finish:
                self.state = WorkerState.FINISHED
                return
            await self._pause(self._died(code))

    def _died(self, code: int) -> float:
        """Counts the death and gives the pause before the restart."""
        self.deaths += 1
        self.state = WorkerState.WAITING
        self._recent.add(time.monotonic())
        assert self._process is not None
        death = Death(self.spec.name, self._process.pid, code, len(self._recent.times))
        if self._on_death:
            self._on_death(death)
        if self._recent.too_many:
            self.state = WorkerState.KEEPS_DYING
            raise WorkerKeepsDyingError(death, last_words(self.spec.log_file))
        return self._recent.pause

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _start(self) -> asyncio.subprocess.Process:
        self.spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.spec.log_file.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *guarded(list(self.spec.command)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **self.spec.environment},
                start_new_session=True,
            )

    def _signal(self, number: signal.Signals) -> None:
        """To the worker; SIGKILL also reaches what it started."""
        if self.pid is None:
            return
        with suppress(ProcessLookupError):
            if number is signal.SIGKILL:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)


def last_words(log_file: Path) -> str:
    """The last lines of a log, at most 16 KiB of them; empty where there is none."""
    try:
        with log_file.open("rb") as log:
            log.seek(max(0, log_file.stat().st_size - _LAST_WORDS_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-_LAST_WORDS_LINES:])
