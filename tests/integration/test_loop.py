"""The whole loop: equal seeds decide alike, whatever the number of workers and however often they die."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlog.reader import LogTail
from schemas.codec import decode
from schemas.pool import SeedSettled, TaskInjected, TaskRetired
from schemas.rollouts import BarrierReached, RolloutFinished, TrajectoryRecorded
from schemas.seals import SelectionClosed
from schemas.synthesis import StageFinished
from schemas.topics import Topic
from tests.integration.loop import PATIENT, Loop, archived, audited, digests, first

FLAGS = (*PATIENT, "--set", "rules.rollout.deadline_seconds=90")
"""One of the tests waits for the deadline; digests cover the rules, so that all have the same."""
SLICE_SECONDS, IN_FLIGHT_SECONDS = 0.02, 0.05
REPLAY = """
import sys
from pathlib import Path
from tests.pools import pools_of
for pool in pools_of(Path(sys.argv[1])):
    print(pool.epoch, pool.recorded.digest, pool.recomputed.digest)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    Loop(folder, *FLAGS).result()
    return folder


@pytest.fixture
def loops() -> Iterator[list[Loop]]:
    """Runs that end with the test."""
    started: list[Loop] = []
    yield started
    for loop in started:
        loop.end()


def test_the_run_that_the_others_are_compared_with_injects_and_retires(undisturbed: Path) -> None:
    events = [event for _, event in archived(undisturbed, Topic.POOL)]
    assert sum(isinstance(event, TaskInjected) for event in events) >= 5
    assert sum(isinstance(event, TaskRetired) for event in events) >= 1
    assert len(digests(undisturbed)) == 4


def test_the_same_seed_gives_the_same_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *FLAGS))
    loops[0].result()
    assert digests(tmp_path / "run") == digests(undisturbed)


def test_another_seed_gives_other_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *FLAGS, "--seed", "2"))
    loops[0].result()
    assert list(digests(tmp_path / "run").values()) != list(digests(undisturbed).values())


def test_more_workers_give_the_same_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *FLAGS, "--set", "rollout_workers=3", "--synthesis-workers", "2"))
    loops[0].until(lambda: len(loops[0].pids("rollouts")) == 3 and len(loops[0].pids("synthesis")) == 2)
    loops[0].result()
    assert digests(tmp_path / "run") == digests(undisturbed)


async def test_a_streams_worker_killed_between_a_barrier_and_its_seal_changes_nothing(
    undisturbed: Path, tmp_path: Path, loops: list[Loop]
) -> None:
    """A paused worker measures nothing, so that the deadline brings the barrier, behind results that take seconds."""
    loop = Loop(tmp_path / "run", *FLAGS)
    loops.append(loop)
    closed = await first(loop.address, Topic.SEALS, lambda event: isinstance(event, SelectionClosed))
    worker = loop.pid("streams")
    os.kill(worker, signal.SIGSTOP)
    later = closed.step + 1
    await first(loop.address, Topic.ROLLOUTS, lambda e: isinstance(e, BarrierReached) and e.step >= later)
    loop.kill(worker)
    assert loop.result()["restarts"] == {"streams": 1}
    assert digests(tmp_path / "run") == digests(undisturbed)
    assert audited(tmp_path / "run") == digests(undisturbed)


async def test_a_rollout_worker_killed_in_mid_group_changes_nothing(
    undisturbed: Path, tmp_path: Path, loops: list[Loop]
) -> None:
    loop = Loop(tmp_path / "run", *FLAGS)
    loops.append(loop)
    worker = loop.pid("rollouts")
    await first(loop.address, Topic.TRAJECTORIES, lambda event: isinstance(event, TrajectoryRecorded))
    await _stopped_in_mid_group(loop.address, worker)
    loop.kill(worker)
    assert loop.result()["restarts"] == {"rollouts": 1}
    assert _cut_off(tmp_path / "run"), "no group was cut off"
    assert digests(tmp_path / "run") == digests(undisturbed)
    assert audited(tmp_path / "run") == digests(undisturbed)


async def test_a_synthesis_worker_killed_in_mid_seed_changes_nothing(
    undisturbed: Path, tmp_path: Path, loops: list[Loop]
) -> None:
    loop = Loop(tmp_path / "run", *FLAGS)
    loops.append(loop)
    worker = loop.pid("synthesis")
    await first(loop.address, Topic.SYNTHESIS, lambda event: isinstance(event, StageFinished))
    loop.kill(worker)
    assert loop.result()["restarts"] == {"synthesis": 1}
    settled = [event.seed for _, event in archived(tmp_path / "run", Topic.POOL) if isinstance(event, SeedSettled)]
    assert len(set(settled)) >= 5
    assert digests(tmp_path / "run") == digests(undisturbed)
    assert audited(tmp_path / "run") == digests(undisturbed)


def test_a_fold_of_the_archive_in_a_fresh_process_gives_the_recorded_digests(undisturbed: Path) -> None:
    command = [sys.executable, "-c", REPLAY, str(undisturbed / "archive")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {int(epoch): (recorded, recomputed) for epoch, recorded, recomputed in map(str.split, lines)}
    assert found == {epoch: (digest, digest) for epoch, digest in digests(undisturbed).items()}


async def _stopped_in_mid_group(address: str, worker: int) -> None:
    """Stops a rollout worker where the log has trajectories of a group and not its result, however long such a moment
    is: the worker goes on a little at a time."""
    topics = (Topic.TRAJECTORIES, Topic.ROLLOUTS)
    left: set[str] = set()
    finished: set[str] = set()
    async with LogTail(address, {(topic.named("rods."), number): 0 for topic in topics for number in range(4)}) as tail:
        stood_so = False
        while not (stood_so and left - finished):
            stood_so = bool(left - finished)
            if not stood_so:
                os.kill(worker, signal.SIGCONT)
                await asyncio.sleep(SLICE_SECONDS)
                os.kill(worker, signal.SIGSTOP)
            await asyncio.sleep(IN_FLIGHT_SECONDS)
            async for batch in tail.until(await tail.ends()):
                for record in batch:
                    event = decode(record.value or b"")
                    if isinstance(event, TrajectoryRecorded):
                        left.add(event.execution)
                    elif isinstance(event, RolloutFinished):
                        finished.add(event.execution)


def _cut_off(folder: Path) -> set[str]:
    """Executions that left trajectories and no result."""
    left = {event.execution for _, event in archived(folder, Topic.TRAJECTORIES)}
    finished: set[Any] = {
        event.execution for _, event in archived(folder, Topic.ROLLOUTS) if isinstance(event, RolloutFinished)
    }
    return left - finished
