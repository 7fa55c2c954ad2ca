from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from learner.errors import ModelFolderError
from learner.model import fresh_model, load_model, small_config


def test_the_small_configuration_has_one_to_four_million_parameters() -> None:
    model = fresh_model(small_config(600, pad=0, end=1), seed=1)
    assert 1_000_000 <= sum(parameter.numel() for parameter in model.parameters()) <= 4_000_000


def test_initial_weights_follow_from_the_seed_alone() -> None:
    config = small_config(50, pad=0, end=1)
    torch.manual_seed(3)
    first = fresh_model(config, seed=1)
    torch.manual_seed(4)
    second = fresh_model(config, seed=1)
    assert all(torch.equal(left, right) for left, right in zip(first.parameters(), second.parameters(), strict=True))


def test_a_saved_model_is_loaded_from_its_folder(tmp_path: Path) -> None:
    model = fresh_model(small_config(50, pad=0, end=1), seed=1)
    model.save_pretrained(tmp_path)
    loaded = load_model(tmp_path)
    assert all(torch.equal(left, right) for left, right in zip(model.parameters(), loaded.parameters(), strict=True))


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelFolderError, match="no model folder"):
        load_model(tmp_path / "absent")


def test_a_damaged_folder_is_one_sentence(tmp_path: Path) -> None:
    fresh_model(small_config(50, pad=0, end=1), seed=1).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFolderError, match="damaged") as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_all_there_are_refused(tmp_path: Path) -> None:
    fresh_model(small_config(50, pad=0, end=1), seed=1).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors.pop("model.norm.weight")
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelFolderError, match="another model"):
        load_model(tmp_path)
