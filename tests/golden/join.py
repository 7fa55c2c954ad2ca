"""``python -m tests.golden.join RUN TARGET``: the log of a finished run as a small run folder, to be kept in git.

Its records are unchanged, one segment a partition, and its cuts stand beside them. ``--without-trajectories`` leaves
those out, as a log is once their retention is over, and the cuts with them, which would miss them.
"""

import argparse
import shutil
from pathlib import Path

from schemas.topics import Topic
from streams.archive.cut import CUTS
from streams.archive.manifest import LOCK, MANIFEST
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions
from tests.golden.make_archive import compact


def join(run: Path, target: Path, trajectories: bool) -> None:
    """Writes the folder, which must not exist."""
    archive = target / "archive"
    target.mkdir(parents=True)
    shutil.copyfile(run / "run.json", target / "run.json")
    compact(run / "archive", archive, [topic for topic in Topic if trajectories or topic is not Topic.TRAJECTORIES])
    for topic in Topic:
        for partition in archived_partitions(run / "archive", topic):
            folder = partition_folder(archive, topic, partition)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / MANIFEST).touch()
            (folder / LOCK).unlink(missing_ok=True)
    if trajectories:
        shutil.copyfile(run / "archive" / CUTS, archive / CUTS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--without-trajectories", action="store_true")
    chosen = parser.parse_args()
    join(chosen.run, chosen.target, not chosen.without_trajectories)
