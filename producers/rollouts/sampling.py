"""Seeded sampling whose draws belong to the attempt: no draw depends on what else is in the batch."""

import hashlib
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Draw(NamedTuple):
    """Sampled ids [B] and their log-probabilities [B] in nats at the sampling temperature (greedy: at 1)."""

    ids: Tensor
    logprobs: Tensor


def uniforms(seed: int, turn: int, message: int, count: int) -> Tensor:
    """`count` numbers in [0, 1) that follow from the attempt's seed and the message's place in it, float64."""
    digest = hashlib.shake_128(f"{seed}:{turn}:{message}".encode()).digest(8 * count)
    return torch.from_numpy((np.frombuffer(digest, dtype=">u8") >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def draw(logits: Tensor, uniform: Tensor, temperature: Tensor) -> Draw:
    """One token per row: the inverse of the distribution function at `uniform` [B], or the likeliest where greedy.

    logits [B, V]; temperature [B], zero for greedy.
    """
    greedy = temperature <= 0
    scaled = logits.float() / torch.where(greedy, torch.ones_like(temperature), temperature)[:, None]
    logprobs = torch.log_softmax(scaled, dim=-1)
    cumulative = logprobs.double().exp().cumsum(-1)
    target = (uniform * cumulative[:, -1])[:, None]
    sampled = torch.searchsorted(cumulative, target, right=True)[:, 0].clamp(max=logits.shape[-1] - 1)
    ids = torch.where(greedy, logprobs.argmax(-1), sampled)
    return Draw(ids, logprobs.gather(-1, ids[:, None])[:, 0])
