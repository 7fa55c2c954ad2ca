"""How fast BFCL verdicts are beside the package's own checker: ``python -m benchmarks.verdicts``.

Both judge the same seeded corruptions in the same process and thread, block by block in turn, each case once and from
its definition. Exit code 1 where a verdict differs or the ratio is below the floor.
"""

import argparse
import json
import sys

from producers.environments.bfcl.comparison import Comparison, compare
from producers.environments.bfcl.source import BfclSource
from producers.environments.corruption import corrupted_cases

FLOOR = 2.0


def measure(seed: int, count: int) -> Comparison:
    """One pass over the first `count` corruptions of a seed."""
    source = BfclSource()
    tasks = [*source.tasks("train"), *source.tasks("heldout")]
    return compare(tasks, list(corrupted_cases(tasks, seed, count)))


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=8000)
    chosen = parser.parse_args()
    found = measure(chosen.seed, chosen.cases)
    figures = {
        "cases": found.cases,
        "disagreements": len(found.disagreements),
        "valid": found.valid,
        "microseconds_per_case": round(found.seconds / found.cases * 1e6, 1),
        "reference_microseconds_per_case": round(found.reference_seconds / found.cases * 1e6, 1),
        "ratio": round(found.ratio, 2),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return int(bool(found.disagreements) or found.ratio < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
