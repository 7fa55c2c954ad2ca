"""The whole loop: equal seeds decide alike, whatever the number of workers."""

import subprocess
import sys
from pathlib import Path

import pytest

from schemas.pool import TaskInjected, TaskRetired
from schemas.topics import Topic
from tests.integration.loop import PATIENT, Loop, archived, digests

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
    Loop(folder, *PATIENT).result()
    return folder


def test_the_run_that_the_others_are_compared_with_injects_and_retires(undisturbed: Path) -> None:
    events = [event for _, event in archived(undisturbed, Topic.POOL)]
    assert sum(isinstance(event, TaskInjected) for event in events) >= 5
    assert sum(isinstance(event, TaskRetired) for event in events) >= 1
    assert len(digests(undisturbed)) == 4


@pytest.mark.slow
def test_another_seed_gives_other_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *PATIENT, "--seed", "2"))
    loops[0].result()
    assert list(digests(tmp_path / "run").values()) != list(digests(undisturbed).values())


@pytest.mark.slow
def test_more_workers_give_the_same_digests(undisturbed: Path, tmp_path: Path, loops: list[Loop]) -> None:
    loops.append(Loop(tmp_path / "run", *PATIENT, "--set", "rollout_workers=3", "--synthesis-workers", "2"))
    loops[0].until(lambda: len(loops[0].pids("rollouts")) == 3 and len(loops[0].pids("synthesis")) == 2)
    loops[0].result()
    assert digests(tmp_path / "run") == digests(undisturbed)


def test_a_fold_of_the_archive_in_a_fresh_process_gives_the_recorded_digests(undisturbed: Path) -> None:
    command = [sys.executable, "-c", REPLAY, str(undisturbed / "archive")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {int(epoch): (recorded, recomputed) for epoch, recorded, recomputed in map(str.split, lines)}
    assert found == {epoch: (digest, digest) for epoch, digest in digests(undisturbed).items()}
