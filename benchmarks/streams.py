"""How fast the streams are, and what they take: ``python -m benchmarks.streams``.

In one run on one machine with its own embedded broker, K = 16:

- groups and attempts per second of the service (`real`), of an empty Faust agent that only decodes the same messages
  (`empty`), of a worker with one Faust table write per message (`table`), and of the same fold in quixstreams with its
  state store (`quix`, with ``--quix``); of two services on two preloaded partitions each;
- resident memory over 2 million attempts of 100,000 tasks, in steps as a learner writes them;
- the time from the last barrier's acknowledgement to SelectionClosed at 500 groups a second.

Variants take turns, round by round; figures are medians. A ratio is that of one round, so that what the machine does
besides falls on both sides; beside wall time stands processor time per group, which other processes touch less. Exit
code 1 where a target is missed. ``--quick`` shows that it runs: its figures mean little.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from benchmarks.streams_parts.bench_broker import preload
from benchmarks.streams_parts.latency import latencies
from benchmarks.streams_parts.load import K, Load
from benchmarks.streams_parts.memory import held
from benchmarks.streams_parts.race import Lap, lap
from rods.brokers.embedded import EmbeddedBroker

PARTITIONS = 4
WARM_STEPS = 20
TARGETS = {
    "real_to_empty": (0.75, None),
    "real_to_table": (1.5, None),
    "two_to_one": (1.5, None),
    "bytes_per_task": (None, 1000.0),
    "bytes_per_attempt_at_known_tasks": (None, 10.0),
    "latency_p99_ms": (None, 250.0),
}
QUIX_REQUIREMENTS = Path(__file__).parent / "streams_parts" / "quix-requirements.txt"


@dataclass(frozen=True, slots=True)
class Plan:
    """rounds: of the race. groups: read by each variant in each. memory: groups of the memory run."""

    rounds: int = 5
    groups: int = 20_000
    memory_groups: int = 125_000
    memory_tasks: int = 100_000
    latency_steps: int = 400


QUICK = Plan(rounds=1, groups=2_000, memory_groups=4_000, memory_tasks=3_000, latency_steps=20)


def race(plan: Plan, variants: list[str], python: str) -> dict[str, list[Lap]]:
    """Every variant once a round, in turn. ``real2``: two workers."""
    load = Load(plan.groups, 1_000, 500, PARTITIONS)
    laps: dict[str, list[Lap]] = {variant: [] for variant in variants}
    for number in range(plan.rounds):
        with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(Path(folder) / "broker.log") as broker:
            ends = asyncio.run(preload(broker.address, [f"{variant}." for variant in variants], load))
            turns = variants[number % len(variants) :] + variants[: number % len(variants)]
            for variant in turns:
                workers = 2 if variant == "real2" else 1
                name = "real" if variant == "real2" else variant
                found = lap(name, broker.address, f"{variant}.", ends, load.groups, workers=workers, python=python)
                laps[variant].append(found)
                _say(f"round {number + 1} {variant}: {found.groups_per_second:.0f} groups/s")
    return laps


def memory(plan: Plan) -> dict[str, float]:
    """What a task adds to resident memory, and what attempts at known tasks add."""
    load = Load(plan.memory_groups, plan.memory_tasks, 500, PARTITIONS)
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(Path(folder) / "broker.log") as broker:
        found = asyncio.run(held(broker.address, "memory.", load))
    warm = found[min(WARM_STEPS, len(found) // 4)]
    known = next((one for one in found if one.tasks == load.tasks), found[-1])
    last = found[-1]
    return {
        "attempts": plan.memory_groups * K,
        "tasks": plan.memory_tasks,
        "resident_warm_mib": warm.resident / 2**20,
        "resident_all_tasks_mib": known.resident / 2**20,
        "resident_last_mib": last.resident / 2**20,
        "bytes_per_task": (last.resident - warm.resident) / (last.tasks - warm.tasks),
        "bytes_per_attempt_at_known_tasks": (last.resident - known.resident) / max(1, (last.groups - known.groups) * K),
    }


def latency(plan: Plan) -> dict[str, float]:
    """Milliseconds from the last barrier to the selection, at 500 groups a second in steps of 50."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(Path(folder) / "broker.log") as broker:
        found = asyncio.run(
            latencies(broker.address, "latency.", rate=500, step=50, steps=plan.latency_steps, partitions=PARTITIONS)
        )
    return {"steps": len(found), "p50_ms": median(found) * 1e3, "latency_p99_ms": quantiles(found, n=100)[98] * 1e3}


def figures(laps: dict[str, list[Lap]]) -> dict[str, object]:
    """Medians, and the ratios of the issue."""
    rates = {
        variant: {
            "groups_per_second": round(median(lap.groups_per_second for lap in found)),
            "attempts_per_second": round(median(lap.groups_per_second for lap in found) * K),
            "cpu_microseconds_per_group": round(median(lap.cpu_microseconds for lap in found), 1),
        }
        for variant, found in laps.items()
    }
    return {"rates": rates, **{name: value for name, value in _ratios(laps).items() if value is not None}}


def _ratios(laps: dict[str, list[Lap]]) -> dict[str, float | None]:
    return {
        "real_to_empty": _ratio(laps, "real", "empty"),
        "real_to_empty_cpu": _ratio(laps, "real", "empty", cpu=True),
        "real_to_table": _ratio(laps, "real", "table"),
        "real_to_table_cpu": _ratio(laps, "real", "table", cpu=True),
        "real_to_quix": _ratio(laps, "real", "quix"),
        "two_to_one": _ratio(laps, "real2", "real"),
    }


def _ratio(laps: dict[str, list[Lap]], variant: str, other: str, *, cpu: bool = False) -> float | None:
    """How many times as fast a variant is as the other; the median over rounds."""
    if variant not in laps or other not in laps:
        return None
    pairs = zip(laps[variant], laps[other], strict=True)
    if cpu:
        return round(median(b.cpu_microseconds / a.cpu_microseconds for a, b in pairs), 3)
    return round(median(a.groups_per_second / b.groups_per_second for a, b in pairs), 3)


def missed(found: dict[str, object]) -> list[str]:
    """The targets that the figures miss."""
    wrong = []
    for name, (low, high) in TARGETS.items():
        value = found.get(name)
        if isinstance(value, float) and ((low is not None and value < low) or (high is not None and value > high)):
            wrong.append(name)
    return wrong


def quix_python(folder: Path) -> str:
    """The interpreter of an environment with quixstreams, made in `folder` where there is none."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", QUIX_REQUIREMENTS], check=True)
    return str(python)


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a minute, to see that it runs")
    parser.add_argument("--rounds", type=int, help="of the race")
    parser.add_argument("--quix", action="store_true", help="race quixstreams too, from an environment in build/quix")
    parser.add_argument("--bare", action="store_true", help="race the service with an agent that only decodes, too")
    parser.add_argument("--only", choices=["race", "memory", "latency"])
    chosen = parser.parse_args()
    plan = QUICK if chosen.quick else Plan()
    rounds = chosen.rounds or plan.rounds
    plan = Plan(rounds, plan.groups, plan.memory_groups, plan.memory_tasks, plan.latency_steps)
    found: dict[str, object] = {}
    if chosen.only in (None, "race"):
        variants = ["real", "empty", "table", "real2", *(["quix"] * chosen.quix), *(["bare"] * chosen.bare)]
        found |= figures(race(plan, variants, quix_python(Path("build/quix")) if chosen.quix else ""))
    if chosen.only in (None, "memory"):
        found |= memory(plan)
    if chosen.only in (None, "latency"):
        found |= latency(plan)
    found["missed"] = missed(found)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return int(bool(found["missed"]) and not chosen.quick)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
