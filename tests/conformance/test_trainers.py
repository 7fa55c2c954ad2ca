"""What the learner relies on in every trainer, with a model or without."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import nn

from learner.engine import TorchEngine
from learner.samples import StepBatch
from learner.trainer import GrpoTrainer, Published, ScriptedTrainer, Trainer

NOTHING = StepBatch((), 0, 0, 0, 0, 0, 0, None)
Make = Callable[[Path], Trainer]


def grpo(folder: Path) -> GrpoTrainer:
    """A trainer over a model of three weights."""
    torch.manual_seed(3)
    model = nn.Linear(2, 1)
    engine = SimpleNamespace(model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=0.1))
    return GrpoTrainer(cast(TorchEngine, engine), folder / "policies", folder / "checkpoints", keep=9)


def scripted(_: Path) -> ScriptedTrainer:
    return ScriptedTrainer()


@pytest.fixture(params=[scripted, grpo])
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found


async def test_a_step_that_leaves_no_samples_trains_nothing(make: Make, tmp_path: Path) -> None:
    assert await make(tmp_path).train(NOTHING) is None


async def test_weights_are_there_under_their_sha256_or_there_are_none(make: Make, tmp_path: Path) -> None:
    trainer = make(tmp_path)
    published = await trainer.publish(3, 1)
    if trainer.by_step:
        assert Path(published.location).is_absolute() and Path(published.location).is_file()
        assert len(published.sha256) == 64
    else:
        assert published == Published("", "")


async def test_equal_weights_have_equal_names_under_every_version(make: Make, tmp_path: Path) -> None:
    trainer = make(tmp_path)
    assert (await trainer.publish(1, 1)).sha256 == (await trainer.publish(2, 1)).sha256


async def test_the_next_learner_goes_on_from_the_step_that_was_saved(make: Make, tmp_path: Path) -> None:
    first = make(tmp_path)
    for step in (1, 2):
        await first.save(step, 1, {"step": step, "last": False})
    weights = await first.publish(2, 1)
    again = make(tmp_path)
    assert await again.restore(2) == 2
    assert (await again.publish(2, 2)).sha256 == weights.sha256


async def test_a_step_is_never_restored_from_a_later_one(make: Make, tmp_path: Path) -> None:
    trainer = make(tmp_path)
    for step in (1, 4):
        await trainer.save(step, 1, {"step": step, "last": False})
    for asked in range(6):
        assert (await trainer.restore(asked) or 0) <= asked


def test_only_a_trainer_of_trajectories_makes_a_version_of_every_step(make: Make, tmp_path: Path) -> None:
    trainer = make(tmp_path)
    assert trainer.by_step == trainer.needs_trajectories
