"""Ids and digests that derive from seed, epoch, step and content, never from the run's id, so that runs compare."""

import hashlib
import struct
from collections.abc import Mapping
from typing import Any

from schemas.derive import encoder
from schemas.rules import canonical_json
from schemas.task import TaskDefinition

_plain = encoder(TaskDefinition)
"""As ``dataclasses.asdict``, in a fifth of the time: a log may register a hundred thousand tasks."""


def digest(value: object) -> str:
    """sha256, hexadecimal, of the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def group_id(seed: int, epoch: int, step: int, task: str, purpose: str) -> str:
    """The group of a task at a step. 128 bits, hexadecimal."""
    return digest(["group", seed, epoch, step, task, purpose])[:32]


def seed_id(seed: int, epoch: int, step: int, task: str) -> str:
    """The boundary seed of a task at a step. 128 bits, hexadecimal."""
    return digest(["seed", seed, epoch, step, task])[:32]


def content_digest(definition: TaskDefinition) -> str:
    """sha256 of what a task is, without its id and parent: equal content gives equal digests."""
    return content_digest_of(_plain(definition))


def content_digest_of(record: Mapping[str, Any]) -> str:
    """The same, of a definition's plain record. What is None says nothing, so that a field which a later schema version
    adds leaves the digests of older tasks as they were."""
    content = {name: value for name, value in record.items() if value is not None and name not in ("task", "parent")}
    content["turns"] = [{name: value for name, value in turn.items() if value is not None} for turn in record["turns"]]
    return digest(content)


def variant_id(seed: str, content: str) -> str:
    """The task id of a variant: its seed and its content decide it."""
    return "v-" + digest(["variant", seed, content])[:24]


def trajectory_digest(token_ids: tuple[int, ...], logprobs: tuple[float, ...], loss_mask: bytes, messages: str) -> str:
    """sha256, hexadecimal, of a trajectory's payload, little-endian and length-prefixed."""
    parts = (
        struct.pack(f"<{len(token_ids)}q", *token_ids),
        _doubles(logprobs),
        loss_mask,
        messages.encode("utf-8", "surrogatepass"),
    )
    state = hashlib.sha256()
    for part in parts:
        state.update(struct.pack("<q", len(part)))
        state.update(part)
    return state.hexdigest()


def _doubles(values: tuple[float, ...]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)
