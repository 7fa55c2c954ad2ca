"""GRPO on workbench tasks in one process, without topics: finds settings for the real loop, and its rates.

    python -m benchmarks.grpo_offline examples/warm-start --pool 192 --k 8 --learning-rate 2e-4

Epochs over a pool of train tasks in random order, one group per task; each epoch but the first may take in further
tasks of the train split, which stand for verified variants. Before and after, the pool's tasks and held-out tasks are
sampled with the same seeds, so that the differences are paired. Prints JSON lines.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Annotated

import torch
import typer

from learner.advantage import group_advantages
from learner.checkpoint import publish_weights
from learner.engine import StepMetrics, TorchEngine, TrainingSample
from learner.model import load_model
from producers.environments.workbench import language
from producers.environments.workbench.source import WorkbenchSource
from producers.rollouts.group import GroupOutcome, GroupSpec, run_groups
from producers.rollouts.transformers_policy import TransformersPolicy
from schemas.rules import LearnerRules
from schemas.task import TaskDefinition


@dataclass(frozen=True, slots=True)
class Setting:
    """What is tried."""

    pool: int
    k: int
    tasks_per_step: int
    epochs: int
    learning_rate: float
    updates: int
    inject: float
    temperature: float
    seed: int


class Loop:
    """One model, one policy, and the clock's view of both."""

    def __init__(self, folder: Path, source: WorkbenchSource, setting: Setting, weights: Path, max_tokens: int) -> None:
        self.source, self.setting, self.weights = source, setting, weights
        self.policy = TransformersPolicy(folder, join=language.join, calls_of=language.calls_of, max_tokens=max_tokens)
        rules = LearnerRules(
            learning_rate=setting.learning_rate, updates_per_step=setting.updates, micro_batch_tokens=1024
        )
        self.engine = TorchEngine(load_model(folder), rules, temperature=setting.temperature)
        self.sampling_seconds = self.training_seconds = 0.0

    def sample(self, name: str, tasks: Sequence[TaskDefinition], k: int, temperature: float) -> list[GroupOutcome]:
        """The tasks' groups, in their order."""
        specs = [GroupSpec(f"{name}-{task.task}", task, k, self.setting.seed, temperature) for task in tasks]
        found = {outcome.spec.group: outcome for outcome in run_groups(self.policy, self.source, specs)}
        return [found[spec.group] for spec in specs]

    def step(self, name: str, tasks: Sequence[TaskDefinition]) -> tuple[list[GroupOutcome], StepMetrics]:
        """Samples, trains and publishes."""
        start = time.perf_counter()
        outcomes = self.sample(name, tasks, self.setting.k, self.setting.temperature)
        middle = time.perf_counter()
        metrics = self.engine.train_step([sample for outcome in outcomes for sample in samples_of(outcome)])
        published = publish_weights(self.engine.model, self.weights, self.policy.version + 1, 1)
        self.policy.load(published.version, str(published.path), published.sha256)
        published.path.unlink()
        self.sampling_seconds += middle - start
        self.training_seconds += time.perf_counter() - middle
        return outcomes, metrics


def samples_of(outcome: GroupOutcome) -> Iterator[TrainingSample]:
    """A group's training samples; none where it has no variance."""
    passed = [None if attempt.failure else attempt.turns_passed for attempt in outcome.attempts]
    advantages = group_advantages(passed, outcome.spec.task.turns_total)
    for attempt, advantage in zip(outcome.attempts, advantages, strict=True):
        if advantage is not None:
            mask = [bool(byte) for byte in attempt.loss_mask]
            yield TrainingSample(attempt.token_ids, attempt.logprobs, mask, advantage)


def means(outcomes: Sequence[GroupOutcome]) -> list[float]:
    """Mean progress per task, live attempts only."""
    return [outcome.mean_progress or 0.0 for outcome in outcomes]


def rise(before: Sequence[float], after: Sequence[float]) -> dict[str, float]:
    """The paired rise of the mean with its standard error."""
    differences = [right - left for left, right in zip(before, after, strict=True)]
    error = stdev(differences) / sqrt(len(differences))
    return {
        "before": round(fmean(before), 4),
        "after": round(fmean(after), 4),
        "rise": round(fmean(differences), 4),
        "standard_error": round(error, 4),
        "errors_above": round(fmean(differences) / error, 2) if error else 0.0,
    }


def without_variance(outcomes: Sequence[GroupOutcome]) -> float:
    """The share of groups whose attempts all passed equally many turns."""
    return fmean(len({attempt.turns_passed for attempt in outcome.attempts}) == 1 for outcome in outcomes)


def run_epochs(loop: Loop, originals: Sequence[TaskDefinition], fresh: Sequence[TaskDefinition]) -> Iterator[str]:
    """The epochs; one line each."""
    setting, rng = loop.setting, Random(loop.setting.seed)
    pool, waiting, known = list(originals), list(fresh), {task.task for task in originals}
    for epoch in range(setting.epochs):
        order = rng.sample(pool, len(pool))
        outcomes: list[GroupOutcome] = []
        metrics: list[StepMetrics] = []
        for start in range(0, len(order), setting.tasks_per_step):
            found, measured = loop.step(f"e{epoch}", order[start : start + setting.tasks_per_step])
            outcomes += found
            metrics.append(measured)
        yield json.dumps(
            {
                "epoch": epoch,
                "pool": len(pool),
                "steps": len(metrics),
                "originals": round(fmean(means([each for each in outcomes if each.spec.task.task in known])), 4),
                "progress": round(fmean(means(outcomes)), 4),
                "without_variance": round(without_variance(outcomes), 3),
                "entropy": round(fmean(each.entropy for each in metrics), 4),
                "gradient_norm": round(fmean(each.gradient_norm for each in metrics), 3),
                "clip_share": round(fmean(each.clip_share for each in metrics), 4),
                "response_length": round(fmean(each.response_length for each in metrics), 2),
                "sampling_s": round(loop.sampling_seconds, 1),
                "training_s": round(loop.training_seconds, 1),
            }
        )
        count = int(len(pool) * setting.inject)
        pool, waiting = pool + waiting[:count], waiting[count:]


def main(
    model: Path,
    pool: int = 192,
    k: int = 8,
    tasks_per_step: int = 16,
    epochs: int = 5,
    learning_rate: float = 2e-4,
    updates: int = 1,
    inject: Annotated[float, typer.Option(help="share of the pool that further train tasks add per epoch")] = 0.2,
    temperature: float = 1.0,
    max_tokens: int = 32,
    heldout: int = 768,
    samples: int = 4,
    seed: int = 1,
    threads: int = 1,
) -> None:
    """One setting, from the warm start to the paired rise."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    setting = Setting(pool, k, tasks_per_step, epochs, learning_rate, updates, inject, temperature, seed)
    source = WorkbenchSource(seed=1, train=4 * pool, heldout=heldout)
    train, held = list(source.tasks("train")), list(source.tasks("heldout"))
    with TemporaryDirectory() as folder:
        loop = Loop(model, source, setting, Path(folder), max_tokens)
        start = time.perf_counter()
        evaluations = {"heldout": (held, 1.0), "heldout_greedy": (held, 0.0), "pool": (train[:pool], 1.0)}
        wanted = {name: each for name, each in evaluations.items() if each[0]}
        before = {
            name: means(loop.sample("eval", tasks, samples if at else 1, at)) for name, (tasks, at) in wanted.items()
        }
        typer.echo(json.dumps({"setting": str(setting), "evaluation_s": round(time.perf_counter() - start, 1)}))
        for line in run_epochs(loop, train[:pool], train[pool:]):
            typer.echo(line)
        for name, (tasks, at) in wanted.items():
            after = means(loop.sample("eval", tasks, samples if at else 1, at))
            typer.echo(json.dumps({"set": name, **rise(before[name], after)}))


if __name__ == "__main__":
    typer.run(main)
