"""Passing over `rods.seals` without decoding what a fold would let go of again. Pure.

Select keeps of a closed step its digest and who its seeds were, so the groups in its seals, most of the topic, need not
be read. What is kept undecoded are the seals from the `RECENT` newest closed steps on; folded after the skim, they give
the state of a fold that read everything, but for its counts of repeated events, and the seeds of those steps.

A seal is taken for complete by its heads alone. One whose rest is damaged misleads a skim only where a selection of its
step follows before the complete seal does: no worker writes either, and who else can write to `rods.seals` can write
selections.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from schemas.codec import decode, kind_of_frame, leading
from schemas.errors import UndecodableError
from schemas.seals import PartitionSealed, SelectionClosed
from streams.seals.assembly import Waiting, gather, is_complete
from streams.select.fold import SelectState, readable

RECENT = 8
"""Steps whose seeds whoever takes over selecting can write again."""


class SealHead(NamedTuple):
    """What of a PartitionSealed tells which chunk of which seal it is; its leading fields hold it."""

    epoch: int
    step: int
    partition: int
    partitions: int
    chunk: int
    chunks: int
    digest: str


def seal_head(frame: bytes) -> SealHead:
    """The head of a frame of that kind. Raises UndecodableError where it ends too soon."""
    record = leading(frame, "digest").record
    return SealHead(*[record[name] for name in SealHead._fields])


class _Kept(NamedTuple):
    offset: int
    step: int
    head: SealHead | None
    frame: bytes


@dataclass(slots=True)
class Skim:
    """What select needs of the log so far. before: as of the selection before the recent ones."""

    before: SelectState = field(default_factory=SelectState)
    recent: list[SelectionClosed] = field(default_factory=list)
    kept: list[_Kept] = field(default_factory=list)
    next_offset: int = 0

    def take(self, offset: int, frame: bytes) -> None:
        """Takes the message at `offset`. Raises UnknownFingerprintError where a selection cannot be read."""
        self.next_offset = offset + 1
        kind = kind_of_frame(frame)
        try:
            if kind == PartitionSealed.KIND:
                self._seal(offset, seal_head(frame), frame)
            elif kind == SelectionClosed.KIND:
                self._selection(offset, decode(frame), frame)
        except UndecodableError:
            return

    @property
    def closed(self) -> int:
        """The last step with a selection."""
        return self.recent[-1].step if self.recent else self.before.closed

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """What is left to fold, by offset, on top of `before`."""
        for kept in self.kept:
            yield kept.offset, kept.frame

    def _seal(self, offset: int, head: SealHead, frame: bytes) -> None:
        if head.step > self.closed:
            self.kept.append(_Kept(offset, head.step, head, frame))

    def _selection(self, offset: int, event: SelectionClosed, frame: bytes) -> None:
        if event.step != self.closed + 1 or not self._is_complete(event.step) or not readable(event):
            return
        self.recent.append(event)
        if len(self.recent) > RECENT:
            self.before = after(self.before, self.recent.pop(0))
        self.kept = [kept for kept in self.kept if kept.step >= self.recent[0].step]
        self.kept.append(_Kept(offset, event.step, None, frame))

    def _is_complete(self, step: int) -> bool:
        """Whether every partition has a complete seal of a step."""
        waiting: Waiting[SealHead] = Waiting()
        seals: dict[int, SealHead] = {}
        for head in [kept.head for kept in self.kept if kept.head is not None and kept.head.step == step]:
            waiting, chunks = gather(waiting, head)
            seals |= {chunk.partition: chunk for chunk in chunks}
        return is_complete(seals)


def after(state: SelectState, event: SelectionClosed) -> SelectState:
    """The state after the selection of its next step, without the step's seals."""
    last = {**state.last, **{seed.task: event.step for seed in event.seeds}}
    return replace(state, closed=event.step, digest=event.digest, last=last)
