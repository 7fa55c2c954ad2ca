"""`python -m tests.simulation --schedules 1000000 --processes 2`: many seeds, until one fails.

`--seed N` replays one with a trace: a line per thing that happens, led by the tick.
"""

import argparse
import gc
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from time import monotonic

from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.schedule import schedule_of
from tests.simulation.simulate import simulate

CHUNK = 100
COLLECT_EVERY = 100_000
"""Looks for garbage in cycles less often: a schedule makes some, and it is gone with the next."""
REPORT_SECONDS = 10.0


def main() -> int:
    """0: all schedules hold; 1: one does not."""
    options = _options()
    mutant = next((mutant for mutant in MUTANTS if mutant.name == options.mutant), None)
    if options.seed is not None:
        return _replay(options.seed, mutant)
    seeds = range(options.first, options.first + options.schedules)
    started = reported = monotonic()
    for done, failure in _checked(seeds, options.processes, options.mutant):
        if failure:
            print(failure)
            return 1
        if monotonic() - reported > REPORT_SECONDS:
            reported = monotonic()
            rate = done / (reported - started)
            print(f"{done:,} of {len(seeds):,} schedules hold, {rate:.0f}/s", file=sys.stderr, flush=True)
    print(f"{len(seeds):,} schedules hold ({monotonic() - started:.0f} s)")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=2000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, help="replay this one with a trace")
    parser.add_argument("--mutant", choices=[mutant.name for mutant in MUTANTS], help="with this rule broken")
    return parser.parse_args()


def _checked(seeds: range, processes: int, mutant: str | None) -> Iterator[tuple[int, str]]:
    """How many seeds are done, and what failed; in order of the seeds, so that the first failure is the lowest."""
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    if processes == 1:
        for chunk in chunks:
            yield chunk.stop - seeds.start, check(chunk, mutant)
        return
    with ProcessPoolExecutor(processes) as pool:
        for chunk, failure in zip(chunks, pool.map(check, chunks, [mutant] * len(chunks)), strict=True):
            if failure:
                pool.shutdown(wait=False, cancel_futures=True)
            yield chunk.stop - seeds.start, failure


def check(seeds: range, mutant: str | None = None) -> str:
    """The first failure among the seeds, in words; empty where there is none."""
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, 50, 100)
    broken = next((known for known in MUTANTS if known.name == mutant), None)
    for seed in seeds:
        try:
            simulate(seed, mutant=broken)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this seed's failure
            return f"seed {seed} fails: {type(error).__name__}: {error}\nreplay it with --seed {seed}"
    return ""


def _replay(seed: int, mutant: Mutant | None) -> int:
    print(schedule_of(seed))
    try:
        simulate(seed, trace=True, mutant=mutant)
    except Exception:  # noqa: BLE001 - as above
        traceback.print_exc(file=sys.stdout)
        return 1
    print(f"seed {seed} holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
