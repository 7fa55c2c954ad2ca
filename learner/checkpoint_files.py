"""What a checkpoint folder is without its tensors: names, digests, and whether it is complete. No torch."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learner.errors import CheckpointError

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
FORMAT = 1


def file_digest(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_state(path: Path) -> dict[str, Any]:
    """A checkpoint's state.json. Raises CheckpointError."""
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is no checkpoint: its {STATE} is missing or unreadable") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"the checkpoint {path} was written by another version of this program")
    return state


def read_progress(path: Path) -> Mapping[str, Any]:
    """What the caller kept in a checkpoint. Raises CheckpointError."""
    progress: Mapping[str, Any] = read_state(path)["progress"]
    return progress


def check_checkpoint(path: Path) -> None:
    """Raises CheckpointError unless every file of a checkpoint has the digest that it was written with."""
    state = read_state(path)
    for name, key in ((WEIGHTS, "weights_sha256"), (OPTIMIZER, "optimizer_sha256")):
        file = path / name
        if not file.is_file() or file_digest(file) != state.get(key):
            raise CheckpointError(f"the checkpoint {path} lacks the {name} it was written with")


def saved_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Steps and their checkpoints in a folder, oldest first; of one step, by generation."""
    return [(int(found.name.split("-")[1]), found) for found in sorted(folder.glob("checkpoint-*-g*"))]
