"""``rods learn warm-start``: makes the small model that reinforcement learning starts from.

Supervised training on the ground truth of the workbench's train split, renamed anew each time. The folder it writes is
an ordinary model folder (configuration, safetensors, tokenizer) with `warm-start.json`: command, seed and figures.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.errors import UserError

if TYPE_CHECKING:
    from learner.warm_start import WarmStartProgress, WarmStartSettings

RECORD = "warm-start.json"
SMOOTHED_STEPS = 50
DEFAULT_STEPS, DEFAULT_STOP, DEFAULT_BATCH, DEFAULT_RATE = 2000, 1300, 8, 2.5e-3


def warm_start(
    folder: Annotated[Path, typer.Argument(help="where the model goes; must not exist or be empty")],
    seed: Annotated[int, typer.Option(help="of initial weights and demonstrations")] = 1,
    tasks: Annotated[int, typer.Option(min=1, help="tasks of the workbench's train split to learn from")] = 1024,
    steps: Annotated[int, typer.Option(min=1)] = DEFAULT_STEPS,
    batch: Annotated[int, typer.Option(min=1, help="demonstrations per step")] = DEFAULT_BATCH,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="its peak")] = DEFAULT_RATE,
    stop: Annotated[int, typer.Option(min=0, help="stop after this many steps of the schedule; 0: all")] = DEFAULT_STOP,
    evaluate: Annotated[int, typer.Option(min=0, help="held-out tasks to measure at the end, 4 samples each")] = 768,
    threads: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Trains the small policy model on the ground truth of the training tasks."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not empty; name another folder")
    from learner.warm_start import WarmStartSettings

    settings = WarmStartSettings(steps=steps, batch=batch, learning_rate=learning_rate, stop=min(stop or steps, steps))
    last = _train(folder, seed, tasks, settings, threads)
    figures: dict[str, Any] = {"steps": last[-1].step + 1, "tokens": last[-1].tokens}
    figures["loss"] = round(fmean(step.loss for step in last), 4)
    if evaluate:
        figures["heldout"] = _evaluate(folder, evaluate)
    record = {
        "command": f"rods learn warm-start FOLDER --seed {seed} --tasks {tasks} --steps {steps} --batch {batch} "
        f"--learning-rate {learning_rate} --stop {settings.stop} --evaluate {evaluate} --threads {threads}",
        "seed": seed,
        "tasks": tasks,
        "settings": asdict(settings),
        "figures": figures,
    }
    (folder / RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    typer.echo(json.dumps(figures, sort_keys=True))


def _train(
    folder: Path, seed: int, tasks: int, settings: "WarmStartSettings", threads: int
) -> Sequence["WarmStartProgress"]:
    """Trains and saves the model. Returns the last steps."""
    import torch
    from transformers.utils.logging import disable_progress_bar

    from learner.model import WEIGHTS_FILE, fresh_model, small_config
    from learner.warm_start import warm_start as train
    from producers.environments.workbench.source import WorkbenchSource
    from producers.environments.workbench.vocabulary import words
    from producers.rollouts.demonstrations import demonstrations
    from producers.rollouts.tokenizer import WordTokenizer

    torch.set_num_threads(threads)
    tokenizer = WordTokenizer.of_words(words())
    source = WorkbenchSource(train=tasks)
    model = fresh_model(small_config(len(tokenizer), tokenizer.pad, tokenizer.end), seed)
    samples = demonstrations(source, list(source.tasks("train")), tokenizer, seed)
    last: list[WarmStartProgress] = []
    with typer.progressbar(train(model, samples, settings, tokenizer.pad), settings.stop, file=sys.stderr) as steps:
        for step in steps:
            last = [*last[1 - SMOOTHED_STEPS :], step]
    tokenizer.save(folder)
    disable_progress_bar()
    model.save_pretrained(folder)
    (folder / WEIGHTS_FILE).chmod(0o644)
    return last


def _evaluate(folder: Path, count: int) -> dict[str, float]:
    """Mean progress and complete successes at temperature 1 on held-out tasks, four samples each."""
    from producers.environments.workbench import language
    from producers.environments.workbench.source import WorkbenchSource
    from producers.rollouts.group import GroupSpec, run_groups
    from producers.rollouts.transformers_policy import TransformersPolicy

    source = WorkbenchSource(heldout=count)
    policy = TransformersPolicy(folder, join=language.join, calls_of=language.calls_of, max_tokens=32)
    specs = [GroupSpec(task.task, task, 4, 1) for task in source.tasks("heldout")]
    groups = list(run_groups(policy, source, specs))
    attempts = [attempt for group in groups for attempt in group.attempts]
    return {
        "tasks": count,
        "progress": round(fmean(group.mean_progress or 0.0 for group in groups), 4),
        "success": round(fmean(attempt.turns_passed == attempt.turns_total for attempt in attempts), 4),
        "with_variance": round(
            fmean(len({attempt.turns_passed for attempt in group.attempts}) > 1 for group in groups), 4
        ),
    }
