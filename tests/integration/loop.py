"""A whole run as a user starts it, watched from outside: its log, its processes, its end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from eventlog.reader import LogRecord, LogTail
from schemas.codec import decode
from schemas.pool import PoolMaterialized
from schemas.topics import Topic
from streams.archive.read import read_archive
from streams.audit.load.source import ArchiveSource
from streams.audit.replay import ReplayOptions, replay

BRISK = (
    "rules.pool_tasks=48",
    "rules.rollout.k=8",
    "rules.rollout.tasks_per_step=16",
    "rules.rollout.deadline_seconds=45",
    "rules.select.quota=4",
    "rules.learner.evaluate_tasks=0",
)
"""A scripted workbench run of seconds that injects and retires."""

PATIENT = ("--set", "rules.rollout.deadline_seconds=240", "--set", "rules.synthesis.settle_seconds=240")
"""Flags of a run whose deadlines decide nothing, though a worker or a broker dies: of all that are compared."""


class Loop:
    """``rods run`` as a process. Flags stand over `BRISK`."""

    def __init__(self, folder: Path, *flags: str, policy: str = "scripted", epochs: int = 3) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "rods", "run", "--folder", str(folder), "--policy", policy]
        command += ["--epochs", str(epochs), "--rollout-workers", "1", "--json"]
        for assignment in BRISK:
            command += ["--set", assignment]
        command += flags
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self) -> dict[str, Any]:
        """Waits for the end; what it printed. Fails where the run did."""
        out, err = self.process.communicate()
        assert self.process.returncode == 0, err[-4000:]
        document: dict[str, Any] = json.loads(out)
        return document

    @property
    def address(self) -> str:
        """The broker's, once the run has written it down."""
        settings = self.folder / "settings.json"
        self.until(settings.exists)
        return str(json.loads(settings.read_text())["broker"])

    def pids(self, service: str) -> list[int]:
        """The processes of a service that are alive now."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child.pid for child in children if _serves(child, service)]

    def pid(self, service: str) -> int:
        """A process of a service, as soon as there is one."""
        self.until(lambda: bool(self.pids(service)))
        return self.pids(service)[0]

    def broker_pid(self) -> int:
        """The process of the broker that the run started."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return next(child.pid for child in children if {"kafka.Kafka", "--storage-engine"} & set(child.cmdline()))

    def kill(self, pid: int) -> None:
        """As a crash would: no handler runs."""
        os.kill(pid, signal.SIGKILL)

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition while the run is alive."""
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[1][-4000:]
            time.sleep(0.02)

    def end(self) -> None:
        """Ends what a failed test has left."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def _serves(process: psutil.Process, service: str) -> bool:
    try:
        return process.cmdline()[1:5] == ["-m", "rods", service, "work"] or (
            service == "learner" and process.cmdline()[1:4] == ["-m", "rods", "learn"]
        )
    except psutil.Error:
        return False


async def first(address: str, topic: Topic, wanted: Callable[[Any], bool], partitions: int = 4) -> Any:
    """The first event of a topic that is wanted, read from the topic's start and awaited."""
    starts = {(topic.named("rods."), number): 0 for number in range(partitions if topic.by_task else 1)}
    async with LogTail(address, starts) as tail:
        while True:
            for record in await tail.poll(0.1):
                event = decode(record.value or b"")
                if wanted(event):
                    return event


def archived(folder: Path, topic: Topic) -> Iterator[tuple[LogRecord, Any]]:
    """A run's events of a topic, from its archive."""
    for record in read_archive(folder / "archive", topic):
        yield record, decode(record.value or b"")


def audited(folder: Path) -> dict[int, str | None]:
    """Epoch to the pool digest that a replay of the archive comes to. Fails where any decision diverges."""
    report = replay(ArchiveSource(folder / "archive"), ReplayOptions(jobs=1))
    assert report.first is None, report.first
    return report.digests


def digests(folder: Path) -> dict[int, str]:
    """Epoch to the digest that its PoolMaterialized records."""
    events = [event for _, event in archived(folder, Topic.POOL)]
    return {event.epoch: event.digest for event in events if isinstance(event, PoolMaterialized)}
