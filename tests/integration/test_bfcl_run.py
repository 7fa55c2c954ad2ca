"""A run over the 400 BFCL training tasks, as a user starts it: real simulators, K = 16, variants that the package's own
checker passes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.pool import TaskInjected, VariantVerified
from schemas.rollouts import RolloutFinished
from schemas.seals import PartitionSealed, Zone
from schemas.topics import Topic
from tests.integration.loop import archived
from tests.task_files import first_failed


@pytest.mark.slow
def test_three_epochs_of_bfcl_inject_variants_that_the_packages_checker_passes(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    flags = ["--tasks", "bfcl", "--policy", "scripted", "--epochs", "3", "--json", "--folder", str(folder)]
    done = subprocess.run([sys.executable, "-m", "rods", "run", *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]

    rows = json.loads(done.stdout)["epochs"]
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    assert rows[0]["originals"] == 400
    assert all(row["zones"][zone] > 0 for row in rows[1:] for zone in (Zone.MASTERED, Zone.BOUNDARY, Zone.HARD))

    finished = [event for _, event in archived(folder, Topic.ROLLOUTS) if isinstance(event, RolloutFinished)]
    slots = [slot for event in {event.group: event for event in finished}.values() for slot in event.slots]
    assert len(slots) >= 19_200
    assert {slot.status for slot in slots} == {"finished"}
    sealed = [event for _, event in archived(folder, Topic.SEALS) if isinstance(event, PartitionSealed)]
    assert sum(len(group.passed) for seal in sealed for group in seal.groups) == len(slots)

    pool = [event for _, event in archived(folder, Topic.POOL)]
    variants = {event.definition.task: event.definition for event in pool if isinstance(event, VariantVerified)}
    injected = {event.task for event in pool if isinstance(event, TaskInjected) and not event.returned}
    assert len(injected) >= 40
    truths = {task: [list(turn.ground_truth) for turn in variants[task].turns] for task in injected}
    assert {task for task in injected if first_failed(variants[task], truths[task]) is not None} == set()
