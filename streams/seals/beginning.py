"""Whether a `rods.seals` that begins behind offset 0 was emptied and sealed anew, or lost its beginning. Pure."""

from dataclasses import dataclass, field

from schemas.codec import kind_of_frame
from schemas.errors import UndecodableError
from schemas.seals import PartitionSealed, SelectionClosed
from streams.seals.skim import seal_head


@dataclass(slots=True)
class Beginning:
    """Takes the frames in their order. partitions: N of the run.

    Sealed anew, every partition begins with the first chunk of step 1, and nothing is selected before all have begun. A
    partition of which nothing is left is folded from its first event, which is no loss.
    """

    partitions: int
    begun: set[int] = field(default_factory=set)

    @property
    def known(self) -> bool:
        """Whether every partition has begun, so that nothing else can show a loss."""
        return len(self.begun) == self.partitions

    def take(self, frame: bytes) -> bool:
        """Whether the frame may follow; False where something before it was lost."""
        kind = kind_of_frame(frame)
        if kind == SelectionClosed.KIND:
            return self.known
        if kind != PartitionSealed.KIND:
            return True
        try:
            head = seal_head(frame)
        except UndecodableError:
            return True
        if head.partition in self.begun:
            return True
        self.begun.add(head.partition)
        return (head.step, head.chunk) == (1, 0)
