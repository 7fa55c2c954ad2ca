"""Does the policy learn on the live curriculum? ``python -m benchmarks.learning``

Seeds 1, 2 and 3 from the committed warm start; a control with learning rate zero; a static pool. Each is a whole
`rods run` with its own broker and workers, one after the other. Held-out tasks are evaluated before training and after
the last epoch, four samples each at the temperature of training, and every rise is paired by task
(`rods.reports.uplift`).

Exit code 1 where a criterion does not hold:
- the tasks that were in the pool at the start rise by more than three standard errors, for every seed;
- the held-out tasks rise by more than two, for at least two of three seeds;
- the control stays within two on both;
- every epoch but the last injects verified variants, and each later epoch trains on some.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HELDOUT_TASKS = 768
SAMPLES = 4


@dataclass(frozen=True, slots=True)
class Arm:
    """One run. extra: flags of `rods run`."""

    name: str
    seed: int
    extra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What a run's summary says."""

    arm: Arm
    summary: dict[str, Any]

    def rise(self, name: str) -> dict[str, Any]:
        """The rise whose name starts like this."""
        found: list[dict[str, Any]] = [row for row in self.summary["rises"] if row["name"].startswith(name)]
        return found[0]

    @property
    def pool(self) -> dict[str, Any]:
        return self.rise("pool at the start")

    @property
    def heldout(self) -> dict[str, Any]:
        return self.rise("held out")

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """Training epochs, without the state before them."""
        rows: list[dict[str, Any]] = [row for row in self.summary["epochs"] if row["epoch"] > 0]
        return rows

    @property
    def feeds(self) -> bool:
        """Whether every epoch but the last injects, and each one after trains on variants."""
        return all(row["injected"] > 0 for row in self.epochs[:-1]) and all(
            row["variants_trained"] > 0 for row in self.epochs[1:]
        )


def arms(seeds: list[int]) -> list[Arm]:
    """The runs of the benchmark, in order."""
    return [
        *(Arm(f"rods, seed {seed}", seed) for seed in seeds),
        Arm("learning rate 0", seeds[0], ("--set", "rules.learner.learning_rate=0")),
        *(Arm(f"static, seed {seed}", seed, ("--curriculum", "static")) for seed in seeds[:1]),
    ]


def measure(arm: Arm, folder: Path, epochs: int) -> Result:
    """Runs an arm, unless the folder holds its summary already; its progress goes to stderr.

    Raises subprocess.CalledProcessError where the run fails.
    """
    place = folder / arm.name.replace(" ", "-").replace(",", "")
    if (place / "summary.json").exists():
        return Result(arm, json.loads((place / "summary.json").read_text()))
    command = [sys.executable, "-m", "rods", "run", "--seed", str(arm.seed), "--epochs", str(epochs), "--json"]
    command += ["--folder", str(place)]
    command += [
        "--set",
        f"rules.learner.evaluate_tasks={HELDOUT_TASKS}",
        "--set",
        f"rules.learner.evaluate_k={SAMPLES}",
    ]
    command += ["--set", f"rules.learner.evaluate_every={epochs}", *arm.extra]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Result(arm, json.loads(done.stdout))


def failures(results: list[Result]) -> list[str]:
    """The criteria that do not hold, in sentences."""
    seeds = [result for result in results if result.arm.name.startswith("rods")]
    control = next(result for result in results if result.arm.name == "learning rate 0")
    wrong = [f"{r.arm.name}: the pool rises by {_errors(r.pool)}" for r in seeds if (r.pool["errors"] or 0) <= 3]
    risen = [result for result in seeds if (result.heldout["errors"] or 0) > 2]
    if len(risen) < min(2, len(seeds)):
        wrong.append(f"the held-out tasks rise by more than two standard errors for {len(risen)} of {len(seeds)} seeds")
    for name, rise in (("pool", control.pool), ("held-out tasks", control.heldout)):
        if abs(rise["errors"] or 0) > 2:
            wrong.append(f"the control's {name} moves by {_errors(rise)}")
    wrong += [f"{r.arm.name}: an epoch injects nothing or trains on no variant" for r in seeds if not r.feeds]
    return wrong


def row(result: Result) -> str:
    """One line of the table."""
    pool, held = result.pool, result.heldout
    injected = "/".join(str(epoch["injected"]) for epoch in result.epochs)
    trained = "/".join(str(epoch["variants_trained"]) for epoch in result.epochs)
    return (
        f"{result.arm.name:<18} {_figures(pool)}   {_figures(held)}   injected {injected}   variants trained {trained}"
    )


def _figures(rise: dict[str, Any]) -> str:
    return (
        f"{rise['first']:.3f} -> {rise['last']:.3f} "
        f"({rise['rise']:+.3f} ± {rise['error']:.3f}, {_errors(rise)}, n={rise['tasks']})"
    )


def _errors(rise: dict[str, Any]) -> str:
    return "no spread" if rise["errors"] is None else f"{rise['errors']:+.1f} SE"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path("runs/bench-learning"))
    options = parser.parse_args()
    results = []
    print(f"{'':<18} pool at the start, first to last epoch   held out, before and after")
    for arm in arms(options.seeds):
        results.append(measure(arm, options.folder, options.epochs))
        print(row(results[-1]), flush=True)
    wrong = failures(results)
    for sentence in wrong:
        print(f"does not hold: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
