"""Prefill and decode of a batch of ragged rows on one working cache."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from producers.rollouts.key_value_cache import Arena, CacheShape, Slab, WorkingCache
from producers.rollouts.sampling import draw

PREFILL_TOKENS = 4096
"""Padded tokens per prefill pass: enough to be efficient, few enough that rows of like length stand together."""
COMPACT_BELOW = 0.8
"""Rows are compacted when fewer than this share is live: copying the cache costs about as much as one step."""


@dataclass(slots=True)
class Row:
    """One attempt's message in the making.

    ids: the whole conversation up to where the policy speaks. slab: keys and values of a true prefix of it, or None.
    uniforms [tokens]: the draws. After decoding: sampled, logprobs, and `kept`, the keys and values of all but the
    last id.
    """

    ids: Sequence[int]
    slab: Slab | None
    uniforms: Tensor
    temperature: float
    sampled: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    kept: Tensor | None = None

    @property
    def all_ids(self) -> list[int]:
        return [*self.ids, *self.sampled]

    @property
    def known(self) -> int:
        """How many ids need no prefill."""
        return 0 if self.slab is None else len(self.slab.ids)


def decode_rows(
    model: nn.Module, arena: Arena, shape: CacheShape, rows: Sequence[Row], max_tokens: int, end: int
) -> None:
    """Samples each row's message up to and including `end`, or `max_tokens` tokens; fills the rows in."""
    order = sorted(rows, key=lambda row: (len(row.ids) - row.known, row.known))
    length = max(len(row.ids) for row in rows) + max_tokens
    cache = WorkingCache(arena.take(shape, len(order), length))
    logits = _prefill(model, cache, order)
    live = list(order)
    positions = torch.tensor([len(row.ids) for row in live])
    numbers = torch.stack([row.uniforms for row in live])
    temperature = torch.tensor([row.temperature for row in live])
    for step in range(max_tokens):
        drawn = draw(logits, numbers[:, step], temperature)
        ids, scores = drawn.ids.tolist(), drawn.logprobs.tolist()
        done = []
        for index, row in enumerate(live):
            if row.kept is not None:
                done.append(True)
                continue
            row.sampled.append(ids[index])
            row.logprobs.append(scores[index])
            finished = ids[index] == end or step + 1 == max_tokens
            if finished:
                row.kept = cache.take(index, len(row.ids) + step)
            done.append(finished)
        left = [index for index, finished in enumerate(done) if not finished]
        if not left:
            return
        tokens = drawn.ids
        if len(left) < COMPACT_BELOW * len(live):
            keep = torch.tensor(left)
            cache.keep(keep, max(len(live[index].ids) for index in left) + step)
            live = [live[index] for index in left]
            positions, numbers, temperature, tokens = positions[keep], numbers[keep], temperature[keep], tokens[keep]
        reach = max(len(row.ids) for row in live) + step + 1
        logits = _forward(model, cache, slice(0, len(live)), tokens[:, None], positions[:, None], reach)
        positions = positions + 1


def _prefill(model: nn.Module, cache: WorkingCache, rows: Sequence[Row]) -> Tensor:
    """Runs what no slab holds; rows are sorted by how much that is. Returns logits [rows, V] after their last ids."""
    for index, row in enumerate(rows):
        if row.slab is not None:
            cache.put(index, row.slab.tensor)
    parts = []
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and (stop + 1 - start) * _fresh(rows[stop]) <= PREFILL_TOKENS:
            stop += 1
        parts.append(_prefill_span(model, cache, rows, start, stop))
        start = stop
    return torch.cat(parts)


def _prefill_span(model: nn.Module, cache: WorkingCache, rows: Sequence[Row], start: int, stop: int) -> Tensor:
    """Rows that are fresh and equal to another row's are run once and copied."""
    span = rows[start:stop]
    first: dict[tuple[int, ...], int] = {}
    source = [first.setdefault(tuple(row.ids), index) if row.slab is None else index for index, row in enumerate(span)]
    distinct = sorted(set(source))
    if len(distinct) == len(span):
        return _run(model, cache, slice(start, stop), span)
    longest = max(len(row.ids) for row in span)
    small = WorkingCache(Arena().take(cache.shape, len(distinct), longest))
    for place, index in enumerate(distinct):
        slab = span[index].slab
        if slab is not None:
            small.put(place, slab.tensor)
    logits = _run(model, small, slice(0, len(distinct)), [span[index] for index in distinct])
    place_of = {index: place for place, index in enumerate(distinct)}
    places = torch.tensor([place_of[index] for index in source])
    cache.tensor[:, :, start:stop, :, :longest] = small.tensor.index_select(2, places)
    return logits.index_select(0, places)


def _run(model: nn.Module, cache: WorkingCache, span: slice, rows: Sequence[Row]) -> Tensor:
    """One pass over the rows' fresh ids, padded to the right. Padding writes beyond a row's end, where it is
    overwritten before any token can see it."""
    widest = max(_fresh(row) for row in rows)
    ids = torch.zeros(len(rows), widest, dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, : _fresh(row)] = torch.tensor(row.ids[row.known :])
    known = torch.tensor([row.known for row in rows])
    positions = known[:, None] + torch.arange(widest)
    last = torch.tensor([_fresh(row) - 1 for row in rows])
    positions = positions.clamp(max=cache.length - 1)
    reach = int(positions.max()) + 1
    return _forward(model, cache, span, ids, positions, reach, last)


def _forward(
    model: nn.Module,
    cache: WorkingCache,
    span: slice,
    ids: Tensor,
    positions: Tensor,
    reach: int,
    last: Tensor | None = None,
) -> Tensor:
    """Logits [rows, V] after column `last` [rows] (default: the only one) of ids [rows, tokens] at these positions."""
    visible = torch.arange(reach) <= positions[:, :, None]
    mask = torch.zeros(visible.shape).masked_fill_(~visible, torch.finfo(torch.float32).min)[:, None]
    hidden = model.base_model(  # type: ignore[operator]
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache.at(span, positions, reach),
        use_cache=True,
    ).last_hidden_state
    picked = hidden[:, 0] if last is None else hidden[torch.arange(len(last)), last]
    logits: Tensor = model.get_output_embeddings()(picked)  # type: ignore[operator]
    return logits


def _fresh(row: Row) -> int:
    return len(row.ids) - row.known
