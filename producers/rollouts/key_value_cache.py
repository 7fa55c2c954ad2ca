"""Keys and values of attempts: a working cache for a batch of ragged rows, and slabs that wait between messages.

Every row of the working cache starts at position zero and grows to its own length; a token's slot is its position.
Space is taken from an arena that outlives the batch, finished rows are dropped by compaction, and nothing is ever
concatenated. What an earlier batch left behind is never visible, but it must be finite: masks add, they do not delete.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Of a model's cache, without batch and length."""

    layers: int
    heads: int
    width: int


@dataclass(frozen=True, slots=True)
class Slab:
    """What is kept of an attempt: the ids that were run, their keys and values [layers, 2, heads, length, width]."""

    ids: tuple[int, ...]
    tensor: Tensor


class Arena:
    """Memory for the working caches of one batch after the other: fresh pages cost more than the copies in them."""

    def __init__(self) -> None:
        self._floats = torch.zeros(0)

    def take(self, shape: CacheShape, rows: int, length: int) -> Tensor:
        """A tensor [layers, 2, rows, heads, length, width] of finite numbers. One is in use at a time."""
        size = (shape.layers, 2, rows, shape.heads, length, shape.width)
        if self._floats.numel() < math.prod(size):
            self._floats = torch.zeros(math.prod(size))
        return self._floats[: math.prod(size)].view(size)


class WorkingCache:
    """Keys and values [layers, 2, rows, heads, length, width], as `past_key_values` of a `transformers` model.

    The model calls `update` once per layer of a forward pass, for the rows and positions that `at` was told.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._span = slice(0, 0)
        self._positions = torch.zeros(0, dtype=torch.long)
        self._rows = torch.zeros(0, dtype=torch.long)
        self._reach = 0

    @property
    def length(self) -> int:
        """Positions there is space for."""
        return self.tensor.shape[4]

    @property
    def shape(self) -> CacheShape:
        layers, _, _, heads, _, width = self.tensor.shape
        return CacheShape(layers, heads, width)

    def at(self, span: slice, positions: Tensor, reach: int) -> "WorkingCache":
        """The next forward pass runs on the rows of `span`, at positions [rows, tokens], all below `reach`."""
        self._span, self._positions, self._reach = span, positions, reach
        self._rows = torch.arange(positions.shape[0])[:, None]
        return self

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: object) -> tuple[Tensor, Tensor]:
        """Stores keys and values [rows, heads, tokens, width]; returns all of the rows' up to the reach."""
        stored = self.tensor[layer, :, self._span]
        stored[0][self._rows, :, self._positions] = keys.transpose(1, 2)
        stored[1][self._rows, :, self._positions] = values.transpose(1, 2)
        return stored[0, :, :, : self._reach], stored[1, :, :, : self._reach]

    def get_seq_length(self, *_: object) -> int:
        """Part of the interface that models ask for; positions are always given explicitly, so the answer is moot."""
        return self._reach

    def put(self, row: int, slab: Tensor) -> None:
        """Copies a waiting slab [layers, 2, heads, length, width] into a row."""
        self.tensor[:, :, row, :, : slab.shape[3]] = slab

    def take(self, row: int, length: int) -> Tensor:
        """A copy of a row's first `length` positions."""
        return self.tensor[:, :, row, :, :length].clone()

    def keep(self, rows: Tensor, length: int) -> None:
        """Compaction: keeps these rows, in this order, and of each its first `length` positions."""
        self.tensor[:, :, : len(rows), :, :length] = self.tensor[:, :, :, :, :length].index_select(2, rows)
        self.tensor = self.tensor[:, :, : len(rows)]


class SlabStore:
    """Slabs of live attempts, the oldest dropped beyond `limit` bytes: a dropped one is simply computed again."""

    def __init__(self, limit: int = 2 << 30) -> None:
        self._slabs: dict[str, Slab] = {}
        self._bytes = 0
        self._limit = limit

    def __len__(self) -> int:
        return len(self._slabs)

    def get(self, attempt: str, ids: Sequence[int]) -> Slab | None:
        """The attempt's slab if it holds a true prefix of these ids."""
        slab = self._slabs.get(attempt)
        if slab is None or len(slab.ids) >= len(ids) or tuple(ids[: len(slab.ids)]) != slab.ids:
            return None
        return slab

    def put(self, attempt: str, slab: Slab) -> None:
        """Keeps a slab in place of the attempt's earlier one."""
        self.drop(attempt)
        self._slabs[attempt] = slab
        self._bytes += slab.tensor.nbytes
        while self._bytes > self._limit:
            self.drop(next(iter(self._slabs)))

    def drop(self, attempt: str) -> None:
        """Frees an attempt's slab, if there is one."""
        slab = self._slabs.pop(attempt, None)
        if slab is not None:
            self._bytes -= slab.tensor.nbytes

    def clear(self) -> None:
        """Frees everything: keys and values of old weights are of no use to new ones."""
        self._slabs.clear()
        self._bytes = 0
