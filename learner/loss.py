"""The pieces of the GRPO loss: pure functions of tensors.

Shapes: N is the number of sampled tokens of a micro-batch, flattened; V is the vocabulary. Every function returns one
value per token; the engine divides sums by the sampled tokens of the whole batch, so that a token weighs the same
whatever micro-batch or attempt it is in (token-level loss).
"""

from typing import NamedTuple

import torch
from torch import Tensor


class TokenScores(NamedTuple):
    """logprobs [N] of the sampled tokens and entropy [N] of the distributions they came from, in nats."""

    logprobs: Tensor
    entropy: Tensor


class ClippedLoss(NamedTuple):
    """loss [N], to be minimised, and clipped [N], true where the clip cuts the gradient off."""

    loss: Tensor
    clipped: Tensor


def token_scores(logits: Tensor, targets: Tensor, temperature: float) -> TokenScores:
    """Scores of targets [N] under logits [N, V] at a sampling temperature. Zero means greedy and is scored at 1.

    The entropy carries no gradient: it is a measurement.
    """
    scaled = logits.float() / (temperature if temperature > 0 else 1.0)
    logprobs = torch.log_softmax(scaled, dim=-1)
    with torch.no_grad():
        entropy = -(logprobs.exp() * logprobs).sum(-1)
    return TokenScores(logprobs.gather(-1, targets[:, None])[:, 0], entropy)


def importance_weights(trainer: Tensor, sampler: Tensor, cap: float) -> Tensor:
    """min(exp(trainer - sampler), cap), [N], without gradient.

    Corrects for tokens sampled by another policy or by other arithmetic than the trainer's; truncated from above, so
    that one unlikely token cannot carry a batch.
    """
    return (trainer.detach() - sampler).exp().clamp(max=cap)


def clipped_policy_loss(
    logprobs: Tensor, old: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> ClippedLoss:
    """PPO's clipped surrogate with separate bounds, all [N]: the ratio to `old` counts within [1 - low, 1 + high]."""
    ratio = (logprobs - old).exp()
    bounded = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    free, cut = ratio * advantages, bounded * advantages
    return ClippedLoss(-torch.minimum(free, cut), (cut < free).detach())


def k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """Schulman's k3 estimate of KL(policy || reference), [N]: non-negative, unbiased for tokens of the policy."""
    difference = reference - logprobs
    return difference.exp() - difference - 1.0
