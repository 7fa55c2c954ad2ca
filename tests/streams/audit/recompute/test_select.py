from collections.abc import Iterator
from dataclasses import dataclass, field

from eventlog.reader import LogRecord
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.audit.load.source import ArchiveSource
from streams.audit.recompute.select import SealedPass
from tests.streams.audit.forge import GOLDEN, places


@dataclass(frozen=True, slots=True)
class Read(ArchiveSource):
    """Keeps the offsets that were read of the seals."""

    offsets: list[int] = field(default_factory=list)

    def records(self, topic: Topic, partition: int, start: int = 0) -> Iterator[LogRecord]:
        for record in ArchiveSource.records(self, topic, partition, start):
            self.offsets.append(record.offset)
            yield record


def test_seals_are_read_up_to_the_first_of_a_later_epoch() -> None:
    source = Read(GOLDEN / "windowed")
    later = places(source.folder, Topic.SEALS, lambda event: isinstance(event, PartitionSealed) and event.epoch > 1)
    SealedPass(source, to_epoch=1).finish()
    assert source.offsets == list(range(later[0][0].offset + 1)) and len(later) > 1
