"""``python -m tests.golden.make_archive NAME``: a small run, archived anew in one segment a partition: a scripted one,
or (`disturbed`) a simulated one in which much goes wrong.

A golden archive is written once and never changed: it must replay whatever the code's defaults become.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from schemas.topics import Topic
from streams.archive.read import archived_partitions, read_partition
from streams.archive.worker import keep_schemas
from tests.archives import seal
from tests.golden.disturbed import write_disturbed

ARCHIVES = Path(__file__).parent / "archives"
SMALL = (
    "rules.pool_tasks=12",
    "rules.rollout.k=8",
    "rules.rollout.tasks_per_step=6",
    "rules.select.quota=3",
    "rules.learner.evaluate_tasks=2",
)
RUNS: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "windowed": (
        "rules.seed=5",
        "rules.measure.window=2",
        "rules.measure.alpha_low=0.25",
        "rules.select.rank_by=variance",
        "rules.select.cooldown_steps=1",
        "rules.pool.patience=2",
        "rules.pool.drift_high=0.75",
        "rules.pool.protect_originals=false",
        "rules.pool.p_max=4",
    ),
    "retiring": ("rules.pool.protect_originals=false", "rules.pool.drift_high=0.9"),
    "retiring-otherwise": (
        "rules.pool.protect_originals=false",
        "rules.pool.drift_high=0.7",
        "rules.pool.drift_low=0.1",
        "rules.measure.alpha_low=0.3",
        "rules.select.quota=1",
    ),
    "retiring-injecting": (
        "rules.pool.protect_originals=false",
        "rules.pool.drift_high=0.7",
        "rules.pool.drift_low=0.1",
        "rules.pool.inject_share=1",
        "rules.measure.alpha_low=0.3",
        "rules.select.quota=1",
    ),
}
DISTURBED = "disturbed"
LIGHT = frozenset({"retiring", "retiring-otherwise", "retiring-injecting"})
"""Two epochs, and without trajectories, as a log is once their retention is over."""


def run(folder: Path, *assignments: str, epochs: int = 3) -> None:
    """A scripted run of seconds."""
    command = [sys.executable, "-m", "rods", "run", "--policy", "scripted", "--epochs", str(epochs)]
    command += ["--folder", str(folder), "--rollout-workers", "1", "--json"]
    for assignment in (*SMALL, *assignments):
        command += ["--set", assignment]
    subprocess.run(command, check=True, capture_output=True)


def compact(archive: Path, target: Path, topics: Iterable[Topic] = Topic) -> None:
    """The same records, one segment a partition."""
    keep_schemas(target)
    for topic in topics:
        for partition in archived_partitions(archive, topic):
            seal(target, topic, partition, read_partition(archive, topic, partition))


def make(name: str) -> None:
    target = ARCHIVES / name
    assert not target.exists(), f"{target} is there already, and a golden archive never changes"
    if name == DISTURBED:
        write_disturbed(target)
        return
    with tempfile.TemporaryDirectory() as folder:
        light = name in LIGHT
        run(Path(folder) / "run", *RUNS[name], epochs=2 if light else 3)
        topics = [topic for topic in Topic if not light or topic is not Topic.TRAJECTORIES]
        compact(Path(folder) / "run" / "archive", target, topics)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or (*RUNS, DISTURBED):
        make(chosen)
