"""The warm start: supervised training on demonstrations, before any reward.

The loss is weighted: 1 on what the policy is to say, less on everything else, since predicting requests and results
teaches a small model the words that it will have to copy. The learning rate grows over the first steps and then falls
linearly. A warm start is meant to stop early: reinforcement learning sharpens skills that are present, and it needs
attempts that differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import torch
from torch import Tensor, nn

from learner.engine import BETAS


class SupervisedSample(Protocol):
    """Ids of a whole conversation, and for each a 1 where the policy is to say it."""

    @property
    def token_ids(self) -> Sequence[int]: ...

    @property
    def loss_mask(self) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class WarmStartSettings:
    """steps of the schedule, each on `batch` samples, of which `stop` are made; peak learning rate; rising steps; the
    weight of what the policy does not say."""

    steps: int = 2000
    stop: int = 2000
    batch: int = 8
    learning_rate: float = 2.5e-3
    rising: int = 50
    context_weight: float = 0.3
    max_gradient_norm: float = 1.0

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        rise = min(1.0, (step + 1) / max(1, self.rising))
        return self.learning_rate * rise * (1.0 - step / self.steps)


@dataclass(frozen=True, slots=True)
class WarmStartProgress:
    """One step: its loss per token on what the policy says, in nats, and the tokens seen so far."""

    step: int
    loss: float
    tokens: int


def warm_start(
    model: nn.Module, samples: Iterable[SupervisedSample], settings: WarmStartSettings, pad: int = 0
) -> Iterable[WarmStartProgress]:
    """Trains the model in place, yielding after every step. Ends early where the samples end."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, betas=BETAS, weight_decay=0.01)
    model.train()
    tokens = 0
    stream = iter(samples)
    for step in range(min(settings.steps, settings.stop)):
        batch = list(islice(stream, settings.batch))
        if not batch:
            return
        for group in optimizer.param_groups:
            group["lr"] = settings.rate(step)
        loss = _step(model, optimizer, batch, settings, pad)
        tokens += sum(len(sample.token_ids) for sample in batch)
        yield WarmStartProgress(step, loss, tokens)


def _step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Sequence[SupervisedSample],
    settings: WarmStartSettings,
    pad: int,
) -> float:
    ids, real, said = _padded(batch, pad)
    logits = model(input_ids=ids, attention_mask=real.long(), use_cache=False).logits[:, :-1]
    losses = nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none")
    said, given = said[:, 1:].flatten(), real[:, 1:].flatten() & ~said[:, 1:].flatten()
    spoken = losses[said].mean()
    loss = spoken + settings.context_weight * losses[given].sum() / said.sum()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), settings.max_gradient_norm)
    optimizer.step()
    return float(spoken.detach())


def _padded(batch: Sequence[SupervisedSample], pad: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, which of them are real, and which the policy says: all [B, T]."""
    longest = max(len(sample.token_ids) for sample in batch)
    ids = torch.full((len(batch), longest), pad, dtype=torch.long)
    real = torch.zeros((len(batch), longest), dtype=torch.bool)
    said = torch.zeros((len(batch), longest), dtype=torch.bool)
    for row, sample in enumerate(batch):
        length = len(sample.token_ids)
        ids[row, :length] = torch.tensor(sample.token_ids, dtype=torch.long)
        real[row, :length] = True
        said[row, :length] = torch.tensor(list(sample.loss_mask), dtype=torch.bool)
    return ids, real, said
