"""The whole loop: equal seeds decide alike, whatever the number of workers and however often they die."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.pool import TaskInjected, TaskRetired
from schemas.rollouts import BarrierReached
from schemas.seals import SelectionClosed
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *FLAGS))
    loops[0].result()
    assert digests(tmp_path / "run") == digests(undisturbed)


@pytest.mark.slow
def test_another_seed_gives_other_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *FLAGS, "--seed", "2"))
    loops[0].result()
    assert list(digests(tmp_path / "run").values()) != list(digests(undisturbed).values())


@pytest.mark.slow
def test_more_workers_give_the_same_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *FLAGS, "--set", "rollout_workers=3", "--synthesis-workers", "2"))
    loops[0].until(lambda: len(loops[0].pids("rollouts")) == 3 and len(loops[0].pids("synthesis")) == 2)
    loops[0].result()
    assert digests(tmp_path / "run") == digests(undisturbed)


@pytest.mark.slow
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


def test_a_fold_of_the_archive_in_a_fresh_process_gives_the_recorded_digests(undisturbed: Path) -> None:
    command = [sys.executable, "-c", REPLAY, str(undisturbed / "archive")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {int(epoch): (recorded, recomputed) for epoch, recorded, recomputed in map(str.split, lines)}
    assert found == {epoch: (digest, digest) for epoch, digest in digests(undisturbed).items()}
