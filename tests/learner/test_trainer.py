import shutil
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import nn

from learner.engine import TorchEngine
from learner.errors import CheckpointError
from learner.trainer import GrpoTrainer


def trainer(folder: Path, keep: int = 2, named: Iterable[str] = ()) -> tuple[GrpoTrainer, nn.Linear]:
    """A trainer over a model of three weights."""
    torch.manual_seed(3)
    model = nn.Linear(2, 1)
    engine = SimpleNamespace(model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=0.1))
    policies, checkpoints = folder / "policies", folder / "checkpoints"
    made = GrpoTrainer(cast(TorchEngine, engine), policies, checkpoints, keep, named=lambda: set(named))
    return made, model


async def saved(made: GrpoTrainer, model: nn.Linear, step: int, generation: int = 1, last: bool = False) -> list[float]:
    """Moves the weights, saves, and returns them."""
    with torch.no_grad():
        model.weight += step
    await made.save(step, generation, {"step": step, "last": last})
    return values(model)


def values(model: nn.Linear) -> list[float]:
    return [float(value) for value in model.weight.detach().flatten()]


def steps_on_disk(folder: Path) -> list[int]:
    return sorted(int(path.name.split("-")[1]) for path in (folder / "checkpoints").iterdir())


async def test_restore_takes_the_newest_checkpoint_at_or_before_the_step(tmp_path: Path) -> None:
    made, model = trainer(tmp_path, keep=9)
    by_step = {step: await saved(made, model, step) for step in (1, 2, 4)}
    again, fresh = trainer(tmp_path)
    assert await again.restore(4) == 4 and values(fresh) == by_step[4]
    assert await again.restore(3) == 2 and values(fresh) == by_step[2]
    assert await again.restore(0) is None


async def test_of_one_step_the_newest_generations_checkpoint_counts(tmp_path: Path) -> None:
    made, model = trainer(tmp_path)
    await saved(made, model, 5, generation=1)
    newest = await saved(made, model, 5, generation=12)
    again, fresh = trainer(tmp_path)
    assert await again.restore(5) == 5 and values(fresh) == newest


async def test_the_newest_checkpoints_and_those_that_end_an_epoch_are_kept(tmp_path: Path) -> None:
    made, model = trainer(tmp_path)
    for step in range(1, 8):
        await saved(made, model, step, last=step in (3, 6))
    assert steps_on_disk(tmp_path) == [3, 6, 7]


async def test_checkpoints_of_the_learner_before_are_let_go_of_too(tmp_path: Path) -> None:
    first, model = trainer(tmp_path)
    for step in (1, 2):
        await saved(first, model, step)
    second, other = trainer(tmp_path)
    for step in (2, 3):
        await saved(second, other, step, generation=2)
    assert steps_on_disk(tmp_path) == [2, 2, 3]


async def test_a_damaged_checkpoint_behind_the_step_does_not_matter_and_one_at_it_is_refused(tmp_path: Path) -> None:
    made, model = trainer(tmp_path)
    for step in (1, 2):
        await saved(made, model, step)
    (newest,) = (tmp_path / "checkpoints").glob("checkpoint-000002-*")
    (newest / "model.safetensors").write_bytes(b"damage")
    assert await made.restore(1) == 1
    with pytest.raises(CheckpointError, match="does not have the sha256"):
        await made.restore(2)


async def test_what_is_half_written_is_no_checkpoint(tmp_path: Path) -> None:
    made, model = trainer(tmp_path)
    await saved(made, model, 1)
    (whole,) = (tmp_path / "checkpoints").iterdir()
    shutil.copytree(whole, whole.with_name(".checkpoint-000002-g0001.partial"))
    assert await made.restore(2) == 1


async def test_published_weights_are_named_by_version_and_the_oldest_are_let_go_of(tmp_path: Path) -> None:
    made, _ = trainer(tmp_path)
    published = [await made.publish(version, 1) for version in range(6)]
    assert Path(published[-1].location).is_absolute() and len(published[-1].sha256) == 64
    assert [Path(one.location).exists() for one in published] == [False, False, True, True, True, True]


async def test_a_checkpoint_that_a_cut_names_is_kept_whatever_its_age(tmp_path: Path) -> None:
    first, model = trainer(tmp_path)
    await saved(first, model, 1)
    made, model = trainer(tmp_path, named=[path.name for path in (tmp_path / "checkpoints").iterdir()])
    for step in range(2, 7):
        await saved(made, model, step)
    assert steps_on_disk(tmp_path) == [1, 5, 6]
