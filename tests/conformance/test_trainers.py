"""What the learner relies on in every trainer, with a model or without."""

from collections.abc import Callable
from pathlib import Path

import pytest

from learner.samples import StepBatch
from learner.trainer import Published, ScriptedTrainer, Trainer
from tests.learner.test_trainer import trainer

NOTHING = StepBatch((), 0, 0, 0, 0, 0, 0, None)
Make = Callable[[Path], Trainer]


def grpo(folder: Path) -> Trainer:
    return trainer(folder, keep=9)[0]


def scripted(_: Path) -> ScriptedTrainer:
    return ScriptedTrainer()


@pytest.fixture(params=[scripted, grpo])
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found


async def test_a_step_that_leaves_no_samples_trains_nothing(make: Make, tmp_path: Path) -> None:
    assert await make(tmp_path).train(NOTHING) is None


async def test_weights_are_there_under_their_sha256_or_there_are_none(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path)
    published = await made.publish(3, 1)
    if made.by_step:
        assert Path(published.location).is_absolute() and Path(published.location).is_file()
        assert len(published.sha256) == 64
    else:
        assert published == Published("", "")


async def test_equal_weights_have_equal_names_under_every_version(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path)
    assert (await made.publish(1, 1)).sha256 == (await made.publish(2, 1)).sha256


async def test_the_next_learner_goes_on_from_the_step_that_was_saved(make: Make, tmp_path: Path) -> None:
    first = make(tmp_path)
    for step in (1, 2):
        await first.save(step, 1, {"step": step, "last": False})
    weights = await first.publish(2, 1)
    again = make(tmp_path)
    assert await again.restore(2) == 2
    assert (await again.publish(2, 2)).sha256 == weights.sha256


async def test_a_step_is_never_restored_from_a_later_one(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path)
    for step in (1, 4):
        await made.save(step, 1, {"step": step, "last": False})
    for asked in range(6):
        assert (await made.restore(asked) or 0) <= asked


def test_only_a_trainer_of_trajectories_makes_a_version_of_every_step(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path)
    assert made.by_step == made.needs_trajectories
