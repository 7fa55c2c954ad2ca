"""Is the log on a live cluster whole, and is every record in it an event that could be?

    topics and partitions -> every record, decoded -> trajectories against results -> faults in order

A live log has no chain: what was changed in place only an archive can show. Of trajectories the beginning may be gone,
since they are kept shortest; every other topic keeps its own.
"""

from array import array
from collections.abc import Iterator

from schemas.topics import Topic
from streams.audit.errors import AuditError
from streams.audit.load.source import ClusterSource
from streams.audit.verify.archive import Progress, Verification, add_counts, repeated
from streams.audit.verify.fault import Fault, FaultKind
from streams.audit.verify.identity import Expected
from streams.audit.verify.known import named, refused
from streams.audit.verify.payload import compare_payloads
from streams.audit.verify.record import Counts, RecordReading
from streams.audit.verify.segment import MOST_FAULTS

_TOPICS = tuple(Topic)


def verify_cluster(source: ClusterSource, progress: Progress | None = None) -> Verification:
    """Reads the topics up to the source's ends. Faults come in the order of topics, partitions and offsets."""
    run, partitions = named(source)
    result = Verification(run or "", chained=False)
    if run is None:
        result.faults.append(_Place(source, Topic.EPOCHS, 0).fault(FaultKind.MISSING, None, "it does not name a run"))
    known, ids, total = refused(source), array("Q"), sum(source.ends.values())
    for place in _places(source, partitions, result):
        expected = Expected(place.topic, place.number, run, partitions)
        counts = place.read(expected, known.get((place.topic, place.number), frozenset()))
        add_counts(result, counts)
        ids += counts.ids
        if counts.payloads:
            place.compare(counts.payloads, result)
        result.faults += place.faults
        if progress:
            progress(result.records, total)
    result.repeated = repeated(ids)
    result.faults.sort()
    return result


def _places(source: ClusterSource, partitions: int | None, result: Verification) -> Iterator["_Place"]:
    """Those to read; a fault for each that is missing, or is none of the run's."""
    for topic in Topic:
        there = source.partitions(topic)
        wanted = 1 if not topic.by_task else len(there) if partitions is None else partitions
        result.partitions += len(there)
        for number in range(max(wanted, *there, 0) + 1):
            place = _Place(source, topic, number)
            if number in there and number < wanted:
                yield place
            elif number in there:
                result.faults.append(place.fault(FaultKind.STRAY, None, "the run has no such partition"))
            elif number < wanted:
                result.faults.append(place.fault(FaultKind.MISSING, None, "the cluster has no such partition"))


class _Place:
    """A partition of the cluster, and what is wrong there."""

    def __init__(self, source: ClusterSource, topic: Topic, number: int) -> None:
        self._source = source
        self.topic, self.number = topic, number
        self.faults: list[Fault] = []

    def fault(self, kind: FaultKind, offset: int | None, meaning: str, last: int | None = None) -> Fault:
        order = (_TOPICS.index(self.topic), self.number, -1 if offset is None else offset)
        return Fault(order, f"{self.topic.named(self._source.prefix)}/{self.number}", kind, offset, last, meaning)

    def _tell(self, kind: FaultKind, offset: int, meaning: str, last: int | None) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(self.fault(kind, offset, meaning, last))

    def read(self, expected: Expected, poison: frozenset[tuple[int, str]]) -> Counts:
        """Every record up to the source's end."""
        end, reading = self._source.end(self.topic, self.number), RecordReading(expected, poison, 0, self._tell)
        may_lack_its_beginning = self.topic is Topic.TRAJECTORIES
        try:
            for record in self._source.records(self.topic, self.number):
                if may_lack_its_beginning:
                    reading.next, may_lack_its_beginning = record.offset, False
                reading.take(record.offset, record.key, record.value)
        except AuditError as error:
            self._tell(FaultKind.UNREADABLE, reading.next, str(error), end - 1)
        else:
            if reading.next < end and not may_lack_its_beginning:
                self._tell(FaultKind.GAP, reading.next, "the records up to the partition's end are gone", end - 1)
        return reading.counts()

    def compare(self, payloads: bytes, result: Verification) -> None:
        """Holds the trajectories that were read to the results of the same partition."""
        results = self._source.records(Topic.ROLLOUTS, self.number)
        for mismatch in compare_payloads(payloads, results, result.trajectories):
            self._tell(FaultKind.TRAJECTORY, mismatch.offset, mismatch.meaning, None)
