"""Whole seals from the chunks that `rods.seals` carries. Pure.

A worker may die between two chunks and its successor writes them all again; a seal is whole once every chunk of one
digest is in. The first chunk of a key counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.seals import PartitionSealed
from streams.measure.seal import identity, join_chunks

Identity = tuple[int, int, int, str]


@dataclass(frozen=True, slots=True)
class Assembly:
    """Chunks that wait for their siblings."""

    waiting: Mapping[Identity, Mapping[int, PartitionSealed]] = field(default_factory=dict)

    def without(self, step: int, partition: int) -> "Assembly":
        """Lets go of the chunks of a seal that is whole."""
        kept = {key: chunks for key, chunks in self.waiting.items() if key[:2] != (step, partition)}
        return self if len(kept) == len(self.waiting) else Assembly(kept)


class Assembled(NamedTuple):
    """The assembly after a chunk, and the whole seal where this chunk completed it."""

    assembly: Assembly
    seal: PartitionSealed | None


def assemble(assembly: Assembly, chunk: PartitionSealed) -> Assembled:
    """Takes a chunk in. One that is impossible (number 5 of 2, partition 3 of 2) is passed over."""
    if not (0 <= chunk.chunk < chunk.chunks and 0 <= chunk.partition < chunk.partitions):
        return Assembled(assembly, None)
    if chunk.chunks == 1:
        return Assembled(assembly.without(chunk.step, chunk.partition), chunk)
    key = identity(chunk)
    chunks = {chunk.chunk: chunk, **assembly.waiting.get(key, {})}
    if any(number not in chunks for number in range(chunk.chunks)):
        return Assembled(Assembly({**assembly.waiting, key: chunks}), None)
    seal = join_chunks([chunks[number] for number in range(chunk.chunks)])
    return Assembled(assembly.without(chunk.step, chunk.partition), seal)
