"""Weights and checkpoints on disk: safetensors and JSON, atomic, named by version, generation and digest.

A name is complete or absent: everything is written beside its place, flushed, and renamed. The digest in a name is the
sha256 of the weights, so that a file of a fenced-off generation can neither overwrite nor pass for another.

A checkpoint folder holds `model.safetensors`, `optimizer.safetensors` (moments by parameter name, and the state of the
random generator) and `state.json` (scalars of the optimiser, counters, and what the caller wants kept).
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from learner.checkpoint_files import FORMAT, OPTIMIZER, STATE, WEIGHTS, file_digest, read_state
from learner.errors import CheckpointError
from streams.archive.durable import sync

RANDOM_STATE = "random_state"


@dataclass(frozen=True, slots=True)
class PublishedWeights:
    """What PolicyPublished says: the version, where its weights are, and the sha256 of that file."""

    version: int
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class LoadedCheckpoint:
    """What a checkpoint held beside the state it restored."""

    version: int
    generation: int
    progress: Mapping[str, Any]


def publish_weights(model: nn.Module, folder: Path, version: int, generation: int) -> PublishedWeights:
    """Writes the weights as one file, `policy-<version>-g<generation>-<digest>.safetensors`."""
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / f".policy-{version:06d}-g{generation:04d}.partial"
    digest = _write_weights(model, scratch)
    path = folder / f"policy-{version:06d}-g{generation:04d}-{digest[:12]}.safetensors"
    scratch.replace(path)
    sync(folder)
    return PublishedWeights(version, path, digest)


def load_weights(model: nn.Module, path: Path, sha256: str | None) -> None:
    """Puts the weights of a file into the model, in place.

    With a sha256 the file is verified first. Raises CheckpointError for a missing, damaged or different file.
    """
    if not path.is_file():
        raise CheckpointError(f"there is no weights file {path}")
    if sha256 is not None and file_digest(path) != sha256:
        raise CheckpointError(f"the weights file {path} does not have the sha256 {sha256}; fetch it again")
    restore_weights(model, _read_tensors(path), str(path))


def restore_weights(model: nn.Module, tensors: Mapping[str, Tensor], origin: str) -> None:
    """Copies tensors into a model, in place. Only names that are tied to another may be absent."""
    state = model.state_dict()
    held = {state[name].data_ptr() for name in tensors if name in state}
    if not set(tensors) <= set(state) or any(tensor.data_ptr() not in held for tensor in state.values()):
        raise CheckpointError(f"{origin} holds the weights of another model")
    if any(state[name].shape != tensor.shape for name, tensor in tensors.items()):
        raise CheckpointError(f"{origin} holds the weights of a model of another size")
    with torch.no_grad():
        for name, tensor in tensors.items():
            state[name].copy_(tensor)


def save_checkpoint(
    folder: Path, model: nn.Module, optimizer: Optimizer, version: int, generation: int, progress: Mapping[str, Any]
) -> Path:
    """Writes `checkpoint-<version>-g<generation>-<digest>` under folder and returns its path.

    progress: JSON values that the caller wants back, such as counters and offsets. Saving again what is there already
    changes nothing.
    """
    scratch = folder / f".checkpoint-{version:06d}-g{generation:04d}.partial"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    digest = _write_weights(model, scratch / WEIGHTS)
    tensors, scalars = _flatten(model, optimizer)
    save_file({**tensors, RANDOM_STATE: torch.get_rng_state()}, scratch / OPTIMIZER)
    state = {
        "format": FORMAT,
        "version": version,
        "generation": generation,
        "weights_sha256": digest,
        "optimizer_sha256": file_digest(scratch / OPTIMIZER),
        "optimizer": scalars,
        "progress": dict(progress),
    }
    (scratch / STATE).write_text(json.dumps(state, sort_keys=True, indent=1) + "\n", encoding="utf-8")
    for name in (WEIGHTS, OPTIMIZER, STATE):
        sync(scratch / name)
    return _move_folder(scratch, folder / f"checkpoint-{version:06d}-g{generation:04d}-{digest[:12]}")


def load_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer) -> LoadedCheckpoint:
    """Restores model, optimiser and torch's random generator, so that training goes on bit for bit.

    Raises CheckpointError where a file is missing, damaged, of another format, or not what its recorded digest says.
    """
    state = read_state(path)
    load_weights(model, path / WEIGHTS, str(state["weights_sha256"]))
    if not (path / OPTIMIZER).is_file() or file_digest(path / OPTIMIZER) != state["optimizer_sha256"]:
        raise CheckpointError(f"the checkpoint {path} lacks the {OPTIMIZER} it was written with; use an older one")
    tensors = _read_tensors(path / OPTIMIZER)
    torch.set_rng_state(tensors.pop(RANDOM_STATE))
    _restore_optimizer(model, optimizer, tensors, state["optimizer"])
    return LoadedCheckpoint(int(state["version"]), int(state["generation"]), state["progress"])


def _distinct_names(model: nn.Module) -> set[str]:
    """Names of the state without those that share storage with an earlier name (tied embeddings)."""
    seen: dict[int, str] = {}
    for name, tensor in model.state_dict().items():
        seen.setdefault(tensor.data_ptr(), name)
    return set(seen.values())


def _write_weights(model: nn.Module, path: Path) -> str:
    state = model.state_dict()
    tensors = {name: state[name].detach().cpu().contiguous() for name in sorted(_distinct_names(model))}
    save_file(tensors, path, metadata={"format": "pt"})
    sync(path)
    return file_digest(path)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is no readable safetensors file") from error


def _flatten(model: nn.Module, optimizer: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The optimiser's tensors by `<field>.<parameter name>`, and its parameter groups' scalars."""
    tensors = {
        f"{field}.{name}": value.detach().clone().contiguous()
        for name, parameter in model.named_parameters()
        for field, value in optimizer.state.get(parameter, {}).items()
    }
    groups = [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]
    return tensors, {"groups": groups}


def _restore_optimizer(
    model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]
) -> None:
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    for key, value in tensors.items():
        field, _, name = key.partition(".")
        if name not in parameters:
            raise CheckpointError("the checkpoint's optimiser state belongs to another model")
        optimizer.state[parameters[name]][field] = value.clone()
    for group, saved in zip(optimizer.param_groups, scalars["groups"], strict=True):
        group.update({key: tuple(value) if isinstance(value, list) else value for key, value in saved.items()})


def _move_folder(scratch: Path, target: Path) -> Path:
    if target.exists():
        shutil.rmtree(scratch)
        return target
    scratch.replace(target)
    sync(target.parent)
    return target
