from pathlib import Path

import pytest
import torch

from learner.checkpoint import load_checkpoint, load_weights, publish_weights, save_checkpoint
from learner.checkpoint_files import file_digest
from learner.engine import TorchEngine, TrainingSample
from learner.errors import CheckpointError
from schemas.rules import LearnerRules
from tests.learner.test_engine import tiny_model

RULES = LearnerRules.model_validate({"learning_rate": 1e-2})


def batch() -> list[TrainingSample]:
    """A batch that also follows from torch's random generator, so that a resumed run must restore it."""
    ids = torch.randint(0, 11, (4, 12)).tolist()
    return [
        TrainingSample(row, [-2.0] * 12, [index > 3 for index in range(12)], advantage)
        for row, advantage in zip(ids, (1.0, -1.0, 0.5, -0.5), strict=True)
    ]


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path: Path) -> None:
    straight = TorchEngine(tiny_model(1), RULES)
    torch.manual_seed(5)
    for _ in range(3):
        straight.train_step(batch())
    path = save_checkpoint(tmp_path, straight.model, straight.optimizer, 3, 2, {"offset": 17})
    for _ in range(3):
        straight.train_step(batch())

    resumed = TorchEngine(tiny_model(9), RULES)
    torch.manual_seed(99)
    loaded = load_checkpoint(path, resumed.model, resumed.optimizer)
    for _ in range(3):
        resumed.train_step(batch())

    assert (loaded.version, loaded.generation, loaded.progress) == (3, 2, {"offset": 17})
    for left, right in zip(straight.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(left, right)


def test_names_carry_version_generation_and_digest(tmp_path: Path) -> None:
    model = tiny_model(1)
    published = publish_weights(model, tmp_path, 7, 3)
    assert published.path.name == f"policy-000007-g0003-{published.sha256[:12]}.safetensors"
    assert published.sha256 == file_digest(published.path)
    checkpoint = save_checkpoint(tmp_path, model, TorchEngine(model, RULES).optimizer, 7, 3, {})
    assert checkpoint.name == f"checkpoint-000007-g0003-{published.sha256[:12]}"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_published_weights_restore_another_model_and_stay_tied(tmp_path: Path) -> None:
    source, target = tiny_model(1), tiny_model(2)
    published = publish_weights(source, tmp_path, 1, 1)
    load_weights(target, published.path, published.sha256)
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(source(ids).logits, target(ids).logits)
    assert target.lm_head.weight.data_ptr() == target.model.embed_tokens.weight.data_ptr()


def test_altered_weights_are_refused_before_they_are_read(tmp_path: Path) -> None:
    model = tiny_model(1)
    published = publish_weights(model, tmp_path, 1, 1)
    data = bytearray(published.path.read_bytes())
    data[-1] ^= 1
    published.path.write_bytes(data)
    with pytest.raises(CheckpointError, match="sha256"):
        load_weights(model, published.path, published.sha256)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    published = publish_weights(tiny_model(1, hidden=32), tmp_path, 1, 1)
    with pytest.raises(CheckpointError, match="another size"):
        load_weights(tiny_model(1), published.path, published.sha256)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path, name: str) -> None:
    engine = TorchEngine(tiny_model(1), RULES)
    path = save_checkpoint(tmp_path, engine.model, engine.optimizer, 1, 1, {})
    (path / name).write_bytes(b"damaged")
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path, engine.model, engine.optimizer)
    assert "\n" not in str(caught.value)


def test_a_missing_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    engine = TorchEngine(tiny_model(1), RULES)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        load_checkpoint(tmp_path / "absent", engine.model, engine.optimizer)
