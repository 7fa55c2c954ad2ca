"""Attention for decoding on a CPU: query heads that share keys read them once, instead of copying them per head."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

NAME = "rods_grouped"


def grouped_attention(
    module: nn.Module,  # noqa: ARG001 - the library's signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Softmax attention without dropout, as `transformers` calls it.

    query [B, H, Q, D]; key, value [B, G, T, D] with G dividing H; attention_mask additive [B, 1, Q, T] and required.
    Returns [B, Q, H, D].
    """
    assert attention_mask is not None
    batch, heads, length, width = query.shape
    groups = key.shape[1]
    share = heads // groups
    folded = query.reshape(batch, groups, share * length, width) * (width**-0.5 if scaling is None else scaling)
    scores = torch.matmul(folded, key.transpose(2, 3)).view(batch, groups, share, length, -1)
    weights = torch.softmax(scores + attention_mask[:, :, None], dim=-1).view(batch, groups, share * length, -1)
    return torch.matmul(weights, value).view(batch, heads, length, width).transpose(1, 2), None


def use_grouped_attention(model: nn.Module) -> None:
    """Makes a `transformers` model attend by `grouped_attention`; its masks must then be given in four dimensions."""
    AttentionInterface.register(NAME, grouped_attention)
    model.set_attn_implementation(NAME)  # type: ignore[operator]
