"""Which rows of the seals count: those of the first complete seal of each step and partition."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streams.seals.assembly import Waiting, gather


def winning_rows(table: pa.Table) -> pa.Table:
    """The groups of the seals that count, a row a group."""
    offsets = table["offset"].to_numpy()
    _, firsts = np.unique(offsets, return_index=True)
    heads = table.select(["offset", "step", "partition", "chunk", "chunks", "digest"]).take(pa.array(firsts))
    chosen = _winning_offsets(_Row(*row) for row in zip(*(column.to_pylist() for column in heads.columns), strict=True))
    keep = np.isin(offsets, np.fromiter(chosen, dtype=np.int64, count=len(chosen))) & (table["k"].to_numpy() > 0)
    return table.filter(pa.array(keep)).combine_chunks()


class _Row(NamedTuple):
    offset: int
    step: int
    partition: int
    chunk: int
    chunks: int
    digest: str


def _winning_offsets(rows: Iterable[_Row]) -> list[int]:
    """The offsets of the chunks of the first complete seal of each step and partition."""
    waiting: Waiting[_Row] = Waiting()
    complete: set[tuple[int, int]] = set()
    chosen: list[int] = []
    for row in rows:
        if (row.step, row.partition) in complete:
            continue
        waiting, chunks = gather(waiting, row)
        if chunks:
            complete.add((row.step, row.partition))
            chosen += [chunk.offset for chunk in chunks]
    return chosen
