"""Complete seals from the chunks that `rods.seals` carries, and complete steps from seals. Pure.

A worker may die between two chunks and its successor writes them all again; a seal is complete once every chunk of one
digest is in. The first chunk of a key counts, and the first complete seal of a step and partition.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from schemas.seals import PartitionSealed
from streams.measure.seal import identity, join_chunks

Identity = tuple[int, int, int, str]


class Chunk(Protocol):
    """What identifies a chunk: of a decoded event, its head, or a row of columns."""

    @property
    def step(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def chunk(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def digest(self) -> str: ...


C = TypeVar("C", bound=Chunk)


@dataclass(frozen=True)
class Waiting(Generic[C]):
    """Chunks that wait for their siblings."""

    chunks: Mapping[Identity, Mapping[int, C]] = field(default_factory=dict)

    def without(self, step: int, partition: int) -> "Waiting[C]":
        """Lets go of the chunks of a seal that is complete."""
        kept = {key: chunks for key, chunks in self.chunks.items() if key[:2] != (step, partition)}
        return self if len(kept) == len(self.chunks) else Waiting(kept)


Assembly = Waiting[PartitionSealed]


class Gathered(NamedTuple, Generic[C]):
    """What waits after a chunk, and all chunks of the seal, in order, where this one completed it."""

    waiting: Waiting[C]
    chunks: tuple[C, ...] = ()


def gather(waiting: Waiting[C], chunk: C) -> Gathered[C]:
    """Takes a chunk in. One that is impossible (number 5 of 2) is passed over."""
    if not 0 <= chunk.chunk < chunk.chunks:
        return Gathered(waiting)
    if chunk.chunks == 1:
        return Gathered(waiting.without(chunk.step, chunk.partition), (chunk,))
    key = identity(chunk)
    chunks = {chunk.chunk: chunk, **waiting.chunks.get(key, {})}
    if len(chunks) < chunk.chunks:
        return Gathered(Waiting({**waiting.chunks, key: chunks}))
    found = tuple([chunks[number] for number in range(chunk.chunks)])
    return Gathered(waiting.without(chunk.step, chunk.partition), found)


class Assembled(NamedTuple):
    """The assembly after a chunk, and the complete seal where this chunk completed it."""

    assembly: Assembly
    seal: PartitionSealed | None


def assemble(assembly: Assembly, chunk: PartitionSealed) -> Assembled:
    """Takes a chunk in. One of an impossible partition (3 of 2) is passed over."""
    if not 0 <= chunk.partition < chunk.partitions:
        return Assembled(assembly, None)
    waiting, chunks = gather(assembly, chunk)
    return Assembled(waiting, join_chunks(chunks) if chunks else None)


class OfPartition(Protocol):
    """What tells N, the partitions of a run."""

    @property
    def partitions(self) -> int: ...


def is_complete(seals: Mapping[int, OfPartition]) -> bool:
    """Whether the seals of a step, by partition, are those of every partition."""
    return bool(seals) and all(partition in seals for partition in range(next(iter(seals.values())).partitions))
