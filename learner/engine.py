"""The training engine: one GRPO step on a batch of samples, in plain torch.

    samples -> sort by length -> micro-batches of at most `micro_batch_tokens` padded tokens
            -> log-probabilities of the sampled tokens -> clipped loss, summed
            -> gradients accumulate -> clip by norm -> AdamW

`train_step` blocks and is meant for a thread of the asyncio learner; one engine must not run in two threads at once.
On one kind of machine the result depends on the batch, the weights and the optimiser's state alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from learner.loss import TokenScores, clipped_policy_loss, importance_weights, k3, token_scores
from schemas.rules import LearnerRules

BETAS = (0.9, 0.95)


@dataclass(frozen=True, slots=True)
class TrainingSample:
    """One attempt as the learner trains on it, all sequences of the same length.

    token_ids: the whole conversation.
    logprobs: the sampler's, at the sampling temperature, for the tokens where loss_mask is true; anything elsewhere.
    loss_mask: true for tokens that the policy sampled, end tokens included; never true for the first token.
    advantage: the attempt's, the same for each of its tokens.
    """

    token_ids: Sequence[int]
    logprobs: Sequence[float]
    loss_mask: Sequence[bool]
    advantage: float


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """Means over the sampled tokens of a step, averaged over its updates."""

    loss: float  # of the policy, with the KL term
    kl: float  # nats; k3 to the reference, or to the sampler where there is no reference
    entropy: float  # nats per token
    clip_share: float  # of the tokens, those whose gradient the clip cuts off
    gradient_norm: float  # before clipping
    response_length: float  # sampled tokens per sample
    tokens: int  # sampled tokens of the batch
    samples: int  # samples in it


class MicroBatch(NamedTuple):
    """Padded samples.

    rows, columns [N]: positions of the sampled tokens.
    sampler, advantages [N]: theirs.

    ids, attention [B, T]. `first` is the offset of its tokens in the batch's order.
    """

    ids: Tensor
    attention: Tensor
    rows: Tensor
    columns: Tensor
    sampler: Tensor
    advantages: Tensor
    first: int


class TorchEngine:
    """Owns a model and its optimiser.

    reference: a frozen model that the KL term (kl_coefficient above zero) holds the policy to; None: no KL term.
    temperature: at which the samples were drawn. bfloat16: autocast in the passes, weights stay float32.
    """

    def __init__(
        self,
        model: nn.Module,
        rules: LearnerRules,
        *,
        temperature: float = 1.0,
        reference: nn.Module | None = None,
        bfloat16: bool = False,
        pad: int = 0,
    ) -> None:
        if rules.kl_coefficient > 0 and reference is None:
            raise ValueError("a KL coefficient above zero needs a reference model")
        self.model = model.train()
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=rules.learning_rate, betas=BETAS, weight_decay=0.0, foreach=True
        )
        self._rules = rules
        self._temperature = temperature
        self._reference = reference.eval() if reference is not None else None
        self._bfloat16 = bfloat16
        self._pad = pad

    def train_step(self, batch: Sequence[TrainingSample]) -> StepMetrics:
        """`updates_per_step` updates on the batch. A batch without a sampled token changes nothing and is all zeros."""
        micro_batches = list(pack(batch, self._rules.micro_batch_tokens, self._pad))
        tokens = sum(len(micro.rows) for micro in micro_batches)
        if tokens == 0:
            return StepMetrics(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, len(batch))
        old = self._frozen_scores(self.model, micro_batches) if self._rules.updates_per_step > 1 else None
        reference = self._frozen_scores(self._reference, micro_batches) if self._reference is not None else None
        sums = torch.zeros(5, dtype=torch.float64)
        for _ in range(self._rules.updates_per_step):
            sums += self._update(micro_batches, old, reference, tokens)
        loss, kl, entropy, clip_share, norm = (sums / self._rules.updates_per_step).tolist()
        return StepMetrics(loss, kl, entropy, clip_share, norm, tokens / len(batch), tokens, len(batch))

    def _update(
        self, micro_batches: Sequence[MicroBatch], old: Tensor | None, reference: Tensor | None, tokens: int
    ) -> Tensor:
        """One optimiser step. Returns means of loss, kl, entropy and clip share, and the gradient norm: [5]."""
        self.optimizer.zero_grad(set_to_none=True)
        sums = torch.zeros(4, dtype=torch.float64)
        for micro in micro_batches:
            span = slice(micro.first, micro.first + len(micro.rows))
            scores = self._scores(self.model, micro)
            anchor = scores.logprobs.detach() if old is None else old[span]
            policy = clipped_policy_loss(
                scores.logprobs, anchor, micro.advantages, self._rules.clip_low, self._rules.clip_high
            )
            loss = policy.loss * importance_weights(anchor, micro.sampler, self._rules.importance_cap)
            kl = k3(scores.logprobs, micro.sampler if reference is None else reference[span])
            if self._rules.kl_coefficient > 0:
                loss = loss + self._rules.kl_coefficient * kl
            (loss.sum() / tokens).backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                parts = [loss.sum(), kl.sum(), scores.entropy.sum(), policy.clipped.sum()]
                sums += torch.stack([part.double() for part in parts]) / tokens
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self._rules.max_gradient_norm)
        self.optimizer.step()
        return torch.cat([sums, norm.detach().double()[None]])

    def _frozen_scores(self, model: nn.Module, micro_batches: Sequence[MicroBatch]) -> Tensor:
        """Log-probabilities of all sampled tokens of the batch in its order, without gradient."""
        with torch.no_grad():
            return torch.cat([self._scores(model, micro).logprobs for micro in micro_batches])

    def _scores(self, model: nn.Module, micro: MicroBatch) -> TokenScores:
        """Scores of a micro-batch's sampled tokens. The head runs on the positions before them only."""
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._bfloat16):
            hidden = model.base_model(  # type: ignore[operator]
                input_ids=micro.ids, attention_mask=micro.attention, use_cache=False
            ).last_hidden_state
            logits = model.get_output_embeddings()(hidden[micro.rows, micro.columns - 1])  # type: ignore[operator]
        return token_scores(logits, micro.ids[micro.rows, micro.columns], self._temperature)


def pack(batch: Sequence[TrainingSample], budget: int, pad: int) -> Iterator[MicroBatch]:
    """Micro-batches of rows times longest row at most `budget` tokens; a single sample may exceed it.

    The longest samples come first, and samples of like length are batched together, so that little is padded. The order
    follows from the batch alone.
    """
    order = sorted(range(len(batch)), key=lambda index: (-len(batch[index].token_ids), index))
    first, start = 0, 0
    while start < len(order):
        longest = max(1, len(batch[order[start]].token_ids))
        stop = start + max(1, budget // longest)
        micro = _pad([batch[index] for index in order[start:stop]], pad, first)
        first, start = first + len(micro.rows), stop
        if len(micro.rows):
            yield micro


def _pad(samples: Sequence[TrainingSample], pad: int, first: int) -> MicroBatch:
    longest = max(len(sample.token_ids) for sample in samples)
    ids = torch.full((len(samples), longest), pad, dtype=torch.long)
    attention = torch.zeros((len(samples), longest), dtype=torch.long)
    mask = torch.zeros((len(samples), longest), dtype=torch.bool)
    sampler = torch.zeros((len(samples), longest), dtype=torch.float32)
    for row, sample in enumerate(samples):
        length = _checked_length(sample)
        ids[row, :length] = torch.tensor(sample.token_ids, dtype=torch.long)
        attention[row, :length] = 1
        mask[row, :length] = torch.tensor(sample.loss_mask, dtype=torch.bool)
        sampler[row, :length] = torch.tensor(sample.logprobs, dtype=torch.float32)
    rows, columns = mask.nonzero(as_tuple=True)
    advantages = torch.tensor([sample.advantage for sample in samples], dtype=torch.float32)
    return MicroBatch(ids, attention, rows, columns, sampler[rows, columns], advantages[rows], first)


def _checked_length(sample: TrainingSample) -> int:
    length = len(sample.token_ids)
    if not len(sample.logprobs) == len(sample.loss_mask) == length or (length and sample.loss_mask[0]):
        raise ValueError("a sample has one log-probability and one mask entry per token, and its first token is given")
    return length
