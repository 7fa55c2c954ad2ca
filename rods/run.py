"""A whole run on one machine: broker, topics, workers, observer, report.

    claim the folder -> broker -> topics -> workers under a supervisor -> watch until the learner has finished
        -> stop in order, archive and warehouse drain -> broker ends -> report

A signal ends it at any point in the same order, within ten seconds.
"""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

from rods.broker import EmbeddedBroker, create_topics, wait_for_broker
from rods.errors import UserError
from rods.observe import Observer
from rods.report import write_report
from rods.run_folder import RunFolder
from rods.settings import EMBEDDED, Settings, write_resolved
from rods.summary import RunSummary
from rods.supervise import Death, Supervisor, WorkerKeepsDyingError, WorkerState
from rods.table import LiveTable, Status
from rods.task_sets import task_sets
from rods.wiring import worker_specs

STOP_SECONDS = 6.0
_WATCH_SECONDS = 0.2


class Ending(StrEnum):
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(slots=True)
class RunOutcome:
    """How a run ended. reason: of a failure, in one sentence; last_words: of the worker that caused it."""

    ending: Ending
    folder: RunFolder
    summary: RunSummary
    reason: str = ""
    last_words: str = ""
    restarts: dict[str, int] = field(default_factory=dict)


def prepare(settings: Settings) -> None:
    """Checks what a user may have got wrong before anything starts. Raises UserError."""
    task_sets(settings)
    if not settings.scripted:
        folder = settings.policy_folder
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            if not (folder / name).is_file():
                raise UserError(
                    f"there is no policy {settings.policy!r}: choose scripted, warm-start or a model folder "
                    f"with {name} in it"
                )


def run(settings: Settings, live: LiveTable) -> RunOutcome:
    """Runs to the end of the last epoch. Raises UserError for what the user can mend."""
    prepare(settings)
    folder = RunFolder(settings.run_folder)
    folder.create(settings.run_id)
    with folder.locked(), _broker(settings, folder) as address:
        resolved = settings.model_copy(update={"broker": address, "folder": str(folder.path.resolve())})
        write_resolved(resolved, folder.settings)
        outcome = asyncio.run(_Run(resolved, folder, live).run())
    write_report(folder.report, outcome.summary, resolved)
    return outcome


@contextmanager
def _broker(settings: Settings, folder: RunFolder) -> Iterator[str]:
    if settings.broker != EMBEDDED:
        wait_for_broker(settings.broker)
        yield settings.broker
        return
    with EmbeddedBroker(folder.logs / "broker.log", settings.broker_port) as broker:
        yield broker.address


class _Run:
    """The asynchronous part: workers and the observer, under one signal handler."""

    def __init__(self, settings: Settings, folder: RunFolder, live: LiveTable) -> None:
        self.settings, self.folder, self.live = settings, folder, live
        self.observer = Observer(settings.broker, settings.prefix, settings.partitions, lambda: None)
        self.interrupted = asyncio.Event()
        self.started = time.monotonic()
        self.blind = False

    async def run(self) -> RunOutcome:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.interrupted.set)
        await create_topics(self.settings.broker, self.settings.prefix, self.settings.partitions)
        outcome = RunOutcome(Ending.FINISHED, self.folder, self.observer.summary)
        specs = worker_specs(self.settings, self.folder.settings)
        following = asyncio.create_task(self.observer.follow())
        supervisor = Supervisor(specs, self._on_death)
        try:
            async with supervisor:
                try:
                    outcome.ending = await self._watch(supervisor, following)
                except WorkerKeepsDyingError as error:
                    outcome.ending, outcome.reason = Ending.FAILED, str(error)
                    outcome.last_words = error.last_words
                await supervisor.stop(STOP_SECONDS)
            self.observer.finish()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(following), 2.0)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            outcome.restarts = {name: count for name, count in supervisor.deaths.items() if count}
        return outcome

    async def _watch(self, supervisor: Supervisor, following: "asyncio.Task[None]") -> Ending:
        """Until the learner has finished or a signal came. Raises WorkerKeepsDyingError."""
        dying = asyncio.create_task(supervisor.watch())
        try:
            while not self.interrupted.is_set():
                if supervisor.states["learner"] is WorkerState.FINISHED:
                    return Ending.FINISHED
                if dying.done():
                    dying.result()
                if following.done() and not self.blind:
                    self.blind = True
                    self.live.say(f"the live table stands still, the run goes on: {following.exception()}")
                self._show(supervisor)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.interrupted.wait(), _WATCH_SECONDS)
            return Ending.INTERRUPTED
        finally:
            dying.cancel()
            await asyncio.gather(dying, return_exceptions=True)

    def _show(self, supervisor: Supervisor) -> None:
        status = Status(
            seconds=time.monotonic() - self.started,
            restarts=sum(supervisor.deaths.values()),
            dashboard=self._dashboard(),
            pids=supervisor.pids,
        )
        self.live.show(self.observer.summary, status)

    def _dashboard(self) -> str:
        """The page's address, which the warehouse worker writes beside its data."""
        with suppress(OSError):
            return (self.folder.path / "dashboard.txt").read_text(encoding="utf-8").strip()
        return ""

    def _on_death(self, death: Death) -> None:
        self.live.say(f"the {death.worker} worker (process {death.pid}) died of {death.cause}; starting it again")
