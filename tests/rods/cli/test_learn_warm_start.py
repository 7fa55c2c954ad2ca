import json
from pathlib import Path

import pytest

from learner.model import load_model
from producers.environments.workbench.source import WorkbenchSource
from producers.rollouts.tokenizer import UNKNOWN, WordTokenizer
from rods.cli.learn_warm_start import RECORD, warm_start
from rods.errors import UserError
from rods.settings import WARM_START


def test_the_command_makes_a_model_folder_with_its_record(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    warm_start(folder, seed=3, tasks=4, steps=2, batch=2, stop=0, learning_rate=1e-3, evaluate=4, threads=1)
    record = json.loads((folder / RECORD).read_text())
    assert record["seed"] == 3
    assert "--tasks 4 --steps 2 --batch 2" in record["command"]
    assert str(tmp_path) not in record["command"]
    assert record["figures"]["steps"] == 2
    assert record["figures"]["heldout"]["tasks"] == 4
    load_model(folder)
    WordTokenizer.load(folder)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(UserError, match="not empty"):
        warm_start(tmp_path, steps=1)
    assert (tmp_path / "kept").read_text() == "kept"


def test_the_committed_warm_start_is_whole_small_and_knows_the_workbenchs_words() -> None:
    model, tokenizer = load_model(WARM_START), WordTokenizer.load(WARM_START)
    assert sum(path.stat().st_size for path in WARM_START.iterdir()) < 20_000_000
    assert 1_000_000 <= sum(parameter.numel() for parameter in model.parameters()) <= 4_000_000
    for task in WorkbenchSource(train=0, heldout=50).tasks("heldout"):
        for turn in task.turns:
            for text in (*turn.requests, *turn.ground_truth):
                assert UNKNOWN not in tokenizer.decode(tokenizer.encode(text))
    record = json.loads((WARM_START / RECORD).read_text())
    assert record["figures"]["heldout"]["progress"] > 0.25
