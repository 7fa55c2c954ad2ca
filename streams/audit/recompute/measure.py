"""Measure recomputed, partition by partition: the fold that decided, over the archived results and barriers.

A worker process per partition gives back the sha256 of each seal that follows, so that what travels between processes
is small. Where one differs, `seals_at` folds the partition again for the values.
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.codec import HEADER_BYTES, encode_like, kind_of_frame
from schemas.rollouts import BarrierReached, RolloutFinished, TaskMeasured
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.audit.collector import uncollected
from streams.audit.compare.divergence import ABSENT, Difference, Divergence, Stage, difference, shown
from streams.audit.load.source import LogSource, Placed, events, placed
from streams.errors import OffsetGapError
from streams.measure.fold import evolve, skip
from streams.measure.state import Evolved, MeasureState

MOST_DIVERGENCES = 20


class SealKey(NamedTuple):
    """A chunk of a seal within its partition."""

    step: int
    chunk: int


class SealPrint(NamedTuple):
    """A recomputed chunk. frame: sha256 of its frame, in the recorded schema version."""

    epoch: int
    barrier_offset: int
    frame: bytes


@dataclass(slots=True)
class MeasuredPartition:
    """What follows from a partition's results and barriers."""

    partition: int
    end: int = 0
    last_step: int = 0
    groups: int = 0
    attempts: int = 0
    views: int = 0
    seals: dict[SealKey, SealPrint] = field(default_factory=dict)
    divergences: list[Divergence] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """A partition to recompute.

    like: the header of the recorded seals.
    to_epoch: the last epoch; None: all.
    views: whether recorded TaskMeasured are compared too.
    """

    source: LogSource
    partition: int
    like: bytes
    to_epoch: int | None = None
    views: bool = True

    @uncollected()
    def run(self) -> MeasuredPartition:
        """Folds the partition. An audited log cannot stop the audit: what stops the fold is in `problem`."""
        measured = MeasuredPartition(self.partition)
        views = _Views(self, measured) if self.views else None
        self._fold(measured, views)
        if views and not measured.problem:
            views.finish()
        return measured

    def _fold(self, measured: MeasuredPartition, views: "_Views | None") -> None:
        try:
            for evolved in self._folded(measured):
                if views and views.like and (measurement := evolved.measured) is not None:
                    views.expect(encode_like(measurement, views.like))
                for seal in evolved.seals:
                    key = SealKey(seal.step, seal.chunk)
                    measured.seals[key] = SealPrint(
                        seal.epoch, seal.barrier_offset, _print(encode_like(seal, self.like))
                    )
        except OffsetGapError as error:
            measured.problem = str(error)

    def _folded(self, measured: MeasuredPartition) -> Iterator[Evolved]:
        """Each event's outcome."""
        for evolved, event in folded(self.source, self.partition, self.to_epoch):
            if isinstance(event, RolloutFinished):
                measured.groups += 1
                measured.attempts += event.k
            measured.end = evolved.state.next_offset
            measured.last_step = evolved.state.step
            yield evolved


def folded(source: LogSource, partition: int, to_epoch: int | None = None) -> Iterator[tuple[Evolved, object]]:
    """A partition of `rods.rollouts` through the fold: each event's outcome, and the event."""
    state = MeasureState(partition)
    for offset, _, event in events(source, Topic.ROLLOUTS, partition):
        if event is None:
            state = skip(state, offset)
            continue
        if to_epoch is not None and isinstance(event, BarrierReached | RolloutFinished) and event.epoch > to_epoch:
            return
        evolved = evolve(state, offset, event)
        state = evolved.state
        yield evolved, event


def seals_at(source: LogSource, partition: int, steps: Collection[int]) -> dict[SealKey, PartitionSealed]:
    """The chunks that the partition's facts come to at some steps."""
    found: dict[SealKey, PartitionSealed] = {}
    for evolved, _ in folded(source, partition) if steps else ():
        found |= {SealKey(seal.step, seal.chunk): seal for seal in evolved.seals if seal.step in steps}
        if evolved.state.step >= max(steps):
            break
    return found


def evidence_of(source: LogSource, partition: int, step: int, task: str) -> tuple[str, ...]:
    """The places of the results of a task at a step, and what they say."""
    found = []
    for offset, _, event in events(source, Topic.ROLLOUTS, partition):
        if isinstance(event, BarrierReached) and event.step == step:
            found.append(f"barrier: {source.place(Topic.ROLLOUTS, partition, offset)}")
            break
        if isinstance(event, RolloutFinished) and event.step == step and (not task or event.task == task):
            passed = [slot.turns_passed if slot.reason is None else slot.reason for slot in event.slots]
            where = source.place(Topic.ROLLOUTS, partition, offset)
            found.append(f"{where}: group {event.group} passed {passed} of {event.turns_total} turns")
    return tuple(found[-MOST_DIVERGENCES:])


class _Views:
    """Recorded TaskMeasured against recomputed ones, of which a group may have several: one for each result of an
    evaluation, and of each shape. They are kept as hashes, since a log has as many as it has groups.

    like: the header of the recorded ones, empty where there is none."""

    def __init__(self, job: MeasureJob, measured: MeasuredPartition) -> None:
        self._job, self._measured = job, measured
        self.like = header_of(job.source, Topic.MEASUREMENTS, job.partition, TaskMeasured.KIND)
        self._prints: set[bytes] = set()

    def expect(self, frame: bytes) -> None:
        """Takes a recomputed one."""
        self._prints.add(_print(frame))

    def finish(self) -> None:
        """Compares what is recorded. What no hash tells is decoded."""
        doubtful = [] if not self.like else list(self._doubtful())
        again = self._views_of({one.event.group for one in doubtful})
        for offset, value, event in doubtful:
            found = [difference(value, view) for view in again.get(event.group, ())]
            if None not in found:
                self._add(event, offset, found[0] if found and found[0] else Difference("", shown(event.group), ABSENT))

    def _doubtful(self) -> Iterator[Placed]:
        job, topic = self._job, Topic.MEASUREMENTS
        for record in job.source.records(topic, job.partition):
            if _print(record.value or b"") in self._prints:
                self._measured.views += 1
                continue
            one = placed(job.source, topic, job.partition, record)
            beyond = job.to_epoch is not None and isinstance(one.event, TaskMeasured) and one.event.epoch > job.to_epoch
            if isinstance(one.event, TaskMeasured) and not beyond:
                self._measured.views += 1
                yield one

    def _views_of(self, groups: set[str]) -> dict[str, list[TaskMeasured]]:
        """One more fold, for the values that hashes do not tell."""
        found: dict[str, list[TaskMeasured]] = {}
        for evolved, _ in folded(self._job.source, self._job.partition, self._job.to_epoch) if groups else ():
            if (measurement := evolved.measured) is not None and measurement.group in groups:
                found.setdefault(measurement.group, []).append(measurement)
        return found

    def _add(self, event: TaskMeasured, offset: int, found: Difference) -> None:
        if len(self._measured.divergences) < MOST_DIVERGENCES:
            self._measured.divergences.append(
                Divergence(
                    Stage.MEASUREMENT,
                    event.epoch,
                    event.step,
                    self._job.source.place(Topic.MEASUREMENTS, self._job.partition, offset),
                    f"the measurement of group {event.group}",
                    *found,
                    task=event.task,
                    evidence=evidence_of(self._job.source, self._job.partition, event.step, event.task),
                )
            )


def header_of(source: LogSource, topic: Topic, partition: int, kind: str) -> bytes:
    """The header of a partition's first frame of a kind, which names its schema version; empty where there is none."""
    if partition in source.partitions(topic):
        for record in source.records(topic, partition):
            value = record.value or b""
            if kind_of_frame(value) == kind:
                return value[:HEADER_BYTES]
    return b""


def _print(frame: bytes) -> bytes:
    return hashlib.sha256(frame).digest()
