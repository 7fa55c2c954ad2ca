"""Which offsets a group member has taken and which are done: a commit is the end of the done prefix of a partition."""

from collections.abc import Iterable


class PartitionProgress:
    """Work is taken in offset order and may be done in any order. `committable` never passes work that is not done."""

    def __init__(self) -> None:
        self._open: dict[int, None] = {}
        self._next: int | None = None

    def take(self, offset: int) -> bool:
        """Whether the offset is new. One beyond the expected offset means that another member of the group did what
        lies between: whatever is open before it is no longer ours."""
        if self._next is not None and offset < self._next:
            return False
        if self._next is not None and offset > self._next:
            self._open.clear()
        self._open[offset] = None
        self._next = offset + 1
        return True

    def done(self, offset: int) -> None:
        """Marks an offset as done; one that is not open is ignored."""
        self._open.pop(offset, None)

    def is_open(self, offset: int) -> bool:
        """Whether the offset is taken and not done."""
        return offset in self._open

    @property
    def committable(self) -> int | None:
        """The next offset to read after a restart; None before the first offset is taken."""
        return next(iter(self._open), self._next)


class TakenOffsets:
    """The progress of all partitions that a member holds, and what of it is committed."""

    def __init__(self) -> None:
        self._partitions: dict[int, PartitionProgress] = {}
        self._committed: dict[int, int] = {}

    def take(self, partition: int, offset: int) -> bool:
        """See `PartitionProgress.take`."""
        return self._partitions.setdefault(partition, PartitionProgress()).take(offset)

    def done(self, partition: int, offset: int) -> None:
        """Marks an offset as done; one of a partition that was lost is ignored."""
        if progress := self._partitions.get(partition):
            progress.done(offset)

    def is_open(self, partition: int, offset: int) -> bool:
        """Whether the offset is taken, not done, and its partition still held."""
        progress = self._partitions.get(partition)
        return progress is not None and progress.is_open(offset)

    def keep(self, partitions: Iterable[int]) -> None:
        """After a rebalance: forgets every partition but these."""
        kept = set(partitions)
        self._partitions = {number: progress for number, progress in self._partitions.items() if number in kept}
        self._committed = {number: offset for number, offset in self._committed.items() if number in kept}

    def commits(self) -> dict[int, int]:
        """The offsets to commit, by partition, where they moved since `committed`."""
        ends = {number: progress.committable for number, progress in self._partitions.items()}
        return {n: end for n, end in ends.items() if end is not None and end != self._committed.get(n)}

    def committed(self, offsets: dict[int, int]) -> None:
        """The broker has taken these commits."""
        self._committed |= {number: offset for number, offset in offsets.items() if number in self._partitions}
