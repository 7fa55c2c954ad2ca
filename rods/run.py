"""A whole run on one machine: broker, topics, workers, observer, report.

    claim the folder -> broker -> topics -> workers under a supervisor -> watch until the learner has finished
        -> stop in order, archive and warehouse drain -> broker ends -> report

A signal ends it at any point in the same order, within ten seconds: each step has its share of them, and what takes
longer is killed.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from rods.brokers.connection import connection_of, try_connection
from rods.brokers.embedded import EmbeddedBroker, create_topics
from rods.brokers.kafka import KafkaBroker, find_kafka
from rods.brokers.keeper import BrokerKeeper, BrokerLostError, RunBroker
from rods.brokers.process import claim_port
from rods.brokers.topic_admin import run_under
from rods.errors import UserError
from rods.reports.observe import Observer
from rods.reports.report import write_report, write_summary
from rods.reports.summary import RunSummary, SummaryFold
from rods.reports.table import LiveTable, Status
from rods.resume import bring_back, plan_resumption, resumed_settings
from rods.run_folder import RunFolder
from rods.settings import KAFKA, ConnectionSettings, Settings, write_resolved
from rods.supervise import Death, Supervisor, WorkerKeepsDyingError, WorkerState
from rods.task_sets import sourced_rules, task_sets
from rods.wiring import worker_specs

STOP_SECONDS = 5.0
FINISH_SECONDS = 120.0
FOLLOW_SECONDS = 0.5
LAST_FOLLOW_SECONDS = 2.0
EXTERNAL = "external"
_WATCH_SECONDS = 0.2


class Ending(StrEnum):
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(slots=True)
class RunOutcome:
    """How a run ended.

    reason: of a failure, in one sentence.
    last_words: of the worker that caused it.
    """

    ending: Ending
    folder: RunFolder
    summary: RunSummary = field(default_factory=lambda: SummaryFold().summary())
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
    if settings.starts_broker:
        claim_port(settings.broker_port)
        if settings.broker == KAFKA:
            find_kafka()
    else:
        try_connection(connection_of(settings))


async def _check_topics(settings: Settings, run_id: str) -> None:
    """A prefix belongs to one run. run_id: the one that must be there; empty: none may."""
    connection = connection_of(settings)
    await create_topics(connection, settings.prefix, settings.partitions)
    under = await run_under(connection, settings.prefix)
    found = under.run_id if under else ""
    if found != run_id:
        way = "bring the log back with rods archive restore" if run_id else "name another with --prefix"
        held = f"hold the run {found}" if found else f"do not hold the run {run_id}"
        raise UserError(f"the topics under the prefix {settings.prefix} of {connection} {held}; {way}")


def run(settings: Settings, live: LiveTable) -> RunOutcome:
    """Runs to the end of the last epoch. Raises UserError for what the user can mend."""
    prepare(settings)
    if not settings.starts_broker:
        asyncio.run(_check_topics(settings, ""))
    claim_port(settings.dashboard_port)
    folder = RunFolder(settings.run_folder)
    folder.create(settings.run_id, settings.broker if settings.starts_broker else EXTERNAL)
    with folder.locked():
        return _carry_out(settings.model_copy(update={"rules": sourced_rules(settings)}), folder, live)


def resume(folder: RunFolder, changes: Mapping[str, Any], epochs: int | None, live: LiveTable) -> RunOutcome:
    """Goes on with a run where it stopped, to the end of its last epoch. Raises UserError."""
    folder.check_format()
    with folder.locked():
        settings = resumed_settings(folder, changes, epochs)
        prepare(settings)
        if not settings.starts_broker:
            asyncio.run(_check_topics(settings, settings.run_id))
        claim_port(settings.dashboard_port)
        resumption = plan_resumption(folder, settings)
        say = partial(live.console.print, markup=False, highlight=False, soft_wrap=True)
        return _carry_out(settings, folder, live, lambda found: bring_back(resumption, found, say))


def _carry_out(
    settings: Settings, folder: RunFolder, live: LiveTable, before: Callable[[Settings], None] = lambda _: None
) -> RunOutcome:
    """The run, in a folder that is locked. before: called with the resolved settings, once the broker answers."""
    port = claim_port(settings.dashboard_port)
    with _broker(settings, folder) as broker:
        address = broker.address if broker else settings.broker
        found = {"broker": address, **_reached(settings), "folder": str(folder.path.resolve()), "dashboard_port": port}
        resolved = settings.model_copy(update=found)
        before(resolved)
        # A client that comes for a topic before it is made may make the broker make it, with other partitions.
        asyncio.run(create_topics(connection_of(resolved), resolved.prefix, resolved.partitions))
        write_resolved(resolved, folder.settings)
        outcome = asyncio.run(_Run(resolved, folder, live, broker).run())
    write_report(folder.report, outcome.summary, resolved.model_dump(mode="json"))
    write_summary(folder.summary, outcome.summary)
    return outcome


@contextmanager
def _broker(settings: Settings, folder: RunFolder) -> Iterator[RunBroker | None]:
    """The broker that the run starts, if it does."""
    if not settings.starts_broker:
        yield None
        return
    log_file, port = folder.logs / "broker.log", settings.broker_port
    kafka = settings.broker == KAFKA
    with KafkaBroker(folder.kafka, log_file, port) if kafka else EmbeddedBroker(log_file, port) as broker:
        yield broker


def _reached(settings: Settings) -> dict[str, ConnectionSettings]:
    """A broker that the run starts is reached without TLS or a password, whatever the settings say of another."""
    return {"connection": ConnectionSettings()} if settings.starts_broker else {}


class _Run:
    """The asynchronous part: workers and the observer, under one signal handler."""

    def __init__(self, settings: Settings, folder: RunFolder, live: LiveTable, broker: RunBroker | None) -> None:
        self.settings, self.folder, self.live = settings, folder, live
        self.keeper = BrokerKeeper(broker, str(folder.path), self._say) if broker else None
        self.connection = connection_of(settings)
        self.observer = Observer(self.connection, settings.prefix, settings.partitions)
        self.interrupted = asyncio.Event()
        self.started = time.monotonic()
        self.blind = False
        self.show_at = 0.0

    async def run(self) -> RunOutcome:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # who keeps or restarts the broker tells of it, once
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.interrupted.set)
        outcome = RunOutcome(Ending.FINISHED, self.folder)
        specs = worker_specs(self.settings, self.folder.settings)
        following = asyncio.create_task(self.observer.follow())
        supervisor = Supervisor(specs, self._on_death)
        keeping = asyncio.create_task(self.keeper.watch() if self.keeper else asyncio.sleep(0))
        try:
            async with supervisor:
                try:
                    outcome.ending = await self._watch(supervisor, following, keeping)
                except (WorkerKeepsDyingError, BrokerLostError) as error:
                    outcome.ending, outcome.reason = Ending.FAILED, str(error)
                    outcome.last_words = error.last_words
                except OSError as error:
                    outcome.ending, outcome.reason = Ending.FAILED, f"a worker cannot be started: {error}"
                finished = outcome.ending is Ending.FINISHED
                await self._stop(supervisor, FINISH_SECONDS if finished else STOP_SECONDS)
            self.observer.finish()
            await asyncio.wait((following,), timeout=LAST_FOLLOW_SECONDS if finished else FOLLOW_SECONDS)
        finally:
            for task in (following, keeping):
                task.cancel()
            await asyncio.gather(following, keeping, return_exceptions=True)
            outcome.summary = self.observer.fold.summary()
            deaths = {"broker": self.keeper.deaths if self.keeper else 0, **supervisor.deaths}
            outcome.restarts = {name: count for name, count in deaths.items() if count}
        return outcome

    async def _stop(self, supervisor: Supervisor, seconds: float) -> None:
        """Stops the workers in order. A signal that comes meanwhile leaves them no more than `STOP_SECONDS`."""
        stopping = asyncio.create_task(supervisor.stop(seconds))
        signalled = asyncio.create_task(self.interrupted.wait())
        await asyncio.wait((stopping, signalled), return_when=asyncio.FIRST_COMPLETED)
        signalled.cancel()
        if seconds > STOP_SECONDS and not stopping.done():
            await supervisor.stop(STOP_SECONDS)
        await stopping

    async def _watch(
        self, supervisor: Supervisor, following: "asyncio.Task[None]", keeping: "asyncio.Task[None]"
    ) -> Ending:
        """Until the learner has finished or a signal came. Raises WorkerKeepsDyingError, BrokerLostError."""
        dying = asyncio.create_task(supervisor.watch())
        try:
            while not self.interrupted.is_set():
                if supervisor.states["learner"] is WorkerState.FINISHED:
                    return Ending.FINISHED
                for guard in (keeping, dying):
                    if guard.done():
                        guard.result()
                if following.done() and not self.blind:
                    self.blind = True
                    why = "its client gave up" if following.cancelled() else following.exception()
                    self._say(f"the live table stands still, the run goes on: {why}")
                self._show(supervisor)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.interrupted.wait(), _WATCH_SECONDS)
            return Ending.INTERRUPTED
        finally:
            dying.cancel()
            await asyncio.gather(dying, return_exceptions=True)

    def _show(self, supervisor: Supervisor) -> None:
        """At most every second, and less often when the rows take long to make."""
        began = time.monotonic()
        if began < self.show_at:
            return
        fold = self.observer.fold
        self.live.update(fold.rows(), Status(fold.moment, sum(supervisor.deaths.values()), self._phase()))
        self.show_at = time.monotonic() + max(1.0, 10 * (time.monotonic() - began))

    def _phase(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        return f"{minutes}:{seconds:02d}, dashboard http://127.0.0.1:{self.settings.dashboard_port}/"

    def _on_death(self, death: Death) -> None:
        self._say(f"the {death.worker} worker (process {death.pid}) died of {death.cause}; starting it again")

    def _say(self, text: str) -> None:
        self.live.console.print(text, markup=False, highlight=False, soft_wrap=True)
