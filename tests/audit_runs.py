"""``python -m tests.audit_runs --runs 20``: seeded runs whose parts are killed, each replayed from its archive.

Prints a line a run: its seed, what was killed, and what the replay found. Exit code 1: a run diverges or fails.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from streams.audit.load.source import ArchiveSource
from streams.audit.replay import ReplayOptions, ReplayReport, replay
from tests.integration.loop import Loop, digests

VICTIMS = ("streams", "rollouts", "synthesis", "archive", "learner")
KILLS = 3


def audited_run(folder: Path, seed: int) -> tuple[list[str], ReplayReport]:
    """A run of a seed with kills that the seed decides, and its replay."""
    chance = random.Random(seed)
    loop = Loop(folder, "--seed", str(seed))
    killed = []
    try:
        loop.until(lambda: bool(loop.pids("rollouts")))
        for _ in range(KILLS):
            victim = chance.choice(VICTIMS)
            time.sleep(chance.uniform(0.5, 4.0))
            if loop.process.poll() is None and (pids := loop.pids(victim)):
                loop.kill(pids[0])
                killed.append(victim)
        loop.result()
    finally:
        loop.end()
    return killed, replay(ArchiveSource(folder / "archive"), ReplayOptions(jobs=1))


def agrees(folder: Path, report: ReplayReport) -> bool:
    """Whether nothing diverges and every recorded pool digest was come to again."""
    return report.agrees and report.digests == digests(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    arguments = parser.parse_args()
    failed = 0
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.runs):
        with tempfile.TemporaryDirectory() as folder:
            killed, report = audited_run(Path(folder) / "run", seed)
            good = agrees(Path(folder) / "run", report)
        failed += not good
        counts = report.counts
        verdict = "no divergence, equal digests" if good else f"DIVERGES: {report.first}"
        print(
            f"seed {seed}: killed {', '.join(killed) or 'nothing'}; {counts.attempts} attempts, {counts.seals} seals, "
            f"{counts.seeds} seeds, {counts.boundaries} boundaries: {verdict}",
            flush=True,
        )
    print(f"{arguments.runs - failed} of {arguments.runs} runs replay without divergence")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
