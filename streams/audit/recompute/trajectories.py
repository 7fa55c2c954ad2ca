"""Which attempts that counted have no trajectory in the log: it is kept shortest, and only training needs it."""

from schemas.codec import kind_of_frame, leading
from schemas.rollouts import TrajectoryRecorded
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.audit.load.source import LogSource
from streams.measure.barrier import MAX_ATTEMPTS


class Attempts:
    """The attempts that counted, as the seals tell them, against the trajectories of the log."""

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._kept: dict[int, dict[tuple[str, str], int]] = {}
        self.counted = self.missing = 0

    def take(self, seal: PartitionSealed) -> None:
        """Counts the attempts of a seal."""
        if seal.partition not in self._kept:
            self._kept[seal.partition] = trajectories_of(self._source, seal.partition)
        kept = self._kept[seal.partition]
        for group in seal.groups:
            if not any(group.trajectories):
                continue
            wanted = sum([1 << number for number, trajectory in enumerate(group.trajectories) if trajectory])
            self.counted += wanted.bit_count()
            self.missing += (wanted & ~kept.get((group.group, group.execution), 0)).bit_count()


def trajectories_of(source: LogSource, partition: int) -> dict[tuple[str, str], int]:
    """Group and execution to the set of its attempts as bits; nothing heavy is decoded."""
    found: dict[tuple[str, str], int] = {}
    if partition not in source.partitions(Topic.TRAJECTORIES):
        return found
    for record in source.records(Topic.TRAJECTORIES, partition):
        value = record.value or b""
        if kind_of_frame(value) == TrajectoryRecorded.KIND:
            row = leading(value, "attempt").record
            if 0 <= row["attempt"] < MAX_ATTEMPTS:
                key = (row["group"], row["execution"])
                found[key] = found.get(key, 0) | 1 << row["attempt"]
    return found
