"""Which rows of the seals count: those of the first whole seal of each step and partition, as the folds take them."""

import numpy as np
import pyarrow as pa


def winning_rows(table: pa.Table) -> pa.Table:
    """The groups of the seals that count, a row a group."""
    offsets = table["offset"].to_numpy()
    _, firsts = np.unique(offsets, return_index=True)
    heads = table.select(["offset", "step", "partition", "chunk", "chunks", "digest"]).take(pa.array(firsts))
    chosen = _winning_offsets(zip(*(column.to_pylist() for column in heads.columns), strict=True))
    keep = np.isin(offsets, np.fromiter(chosen, dtype=np.int64, count=len(chosen))) & (table["k"].to_numpy() > 0)
    return table.filter(pa.array(keep)).combine_chunks()


def _winning_offsets(records: "zip[tuple[int, int, int, int, int, str]]") -> list[int]:
    """The offsets of the chunks that make up the first whole seal of each step and partition."""
    waiting: dict[tuple[int, int, int, str], dict[int, int]] = {}
    whole: set[tuple[int, int]] = set()
    chosen: list[int] = []
    for offset, step, partition, chunk, chunks, digest in records:
        if (step, partition) in whole:
            continue
        found = waiting.setdefault((step, partition, chunks, digest), {})
        found.setdefault(chunk, offset)
        if all(number in found for number in range(chunks)):
            whole.add((step, partition))
            chosen += [found[number] for number in range(chunks)]
    return chosen
