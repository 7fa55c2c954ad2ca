"""``python -m tests.integration.faults --broker embedded --schedules 24``: whole runs under faults, each judged."""

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path

from tests.integration.faults.suite import Outcome, missed, run_suite


async def _main(arguments: argparse.Namespace) -> int:
    began, outcomes = time.monotonic(), list[Outcome]()
    seeds = range(arguments.first, arguments.first + arguments.schedules)
    async for outcome in run_suite(arguments.broker, seeds, arguments.jobs, arguments.keep):
        print(outcome, flush=True)
        outcomes.append(outcome)
    right, never = sum(not outcome.error for outcome in outcomes), sorted(missed(outcomes))
    print(f"{right} of {len(outcomes)} schedules right, {time.monotonic() - began:.0f} s")
    if never:
        print(f"planned, and struck in none: {', '.join(never)}")
    return 1 if never or right < len(outcomes) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.faults", description=__doc__)
    parser.add_argument("--broker", choices=("embedded", "kafka"), default="embedded")
    parser.add_argument("--schedules", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="the number of the first schedule")
    parser.add_argument("--jobs", type=int, default=3, help="runs at a time")
    parser.add_argument("--keep", type=Path, help="where the run folders of failures and of unasked deaths go")
    return parser.parse_args()


if __name__ == "__main__":
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # a broker that is down is part of it
    sys.exit(asyncio.run(_main(_arguments())))
