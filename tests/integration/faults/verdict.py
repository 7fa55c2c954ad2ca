"""Whether a run left the right log: by a plain fold of it from offset 0, and by the undisturbed run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from eventlog.reader import LogRecord
from schemas.codec import decode
from schemas.errors import UndecodableError
from schemas.pool import PoolMaterialized
from schemas.rollouts import BarrierReached, RolloutFinished
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed
from schemas.topics import Topic, partition_of
from streams.archive.read import read_partition
from streams.measure.seal import join_chunks
from tests.integration.faults.meddler import EXECUTION
from tests.integration.faults.trial import Trial
from tests.pools import pools_of
from tests.simulation import oracle, pool_oracle

Fact = TypeVar("Fact", PartitionSealed, SelectionClosed, BoundarySeedSelected)
Log = Mapping[tuple[Topic, int], Sequence[LogRecord]]
"""Every record, by topic and partition."""


class Derived(NamedTuple):
    """What streams wrote, each fact once, in order."""

    seals: list[PartitionSealed]
    selections: list[SelectionClosed]
    seeds: list[BoundarySeedSelected]


class Decided(NamedTuple):
    """What two runs with one seed agree on: no offsets, clocks, executions or generations. pools: epoch to digest."""

    seals: list[tuple[int, int, str]]
    selections: list[tuple[int, str]]
    seeds: list[tuple[int, int, str]]
    pools: dict[int, str]


def assert_right(trial: Trial) -> None:
    """Everything that can be said of one run alone."""
    log = trial.log
    assert_whole(log)
    assert_archived(trial)
    assert_no_result_lost(log, derived(log).seals)
    assert_streams_right(log)
    assert_pool_right(log)
    assert all(pool.agrees for pool in pools_of(trial.archive))


def honest_late(log: Log) -> set[str]:
    """The groups whose only honest results stand behind their barrier; each was counted as missing.

    What the meddler wrote under another execution is not honest.
    """
    found: set[str] = set()
    seals = derived(log).seals
    for seal in seals:
        events = [decoded(record) for record in log[Topic.ROLLOUTS, seal.partition]]
        before, behind = (
            {event.group for event in part if isinstance(event, RolloutFinished) and event.execution != EXECUTION}
            for part in (events[: seal.barrier_offset], events[seal.barrier_offset :])
        )
        late = {group.group for group in seal.groups} & behind - before
        missing = {group.group for group in seal.groups if not group.execution}
        assert late <= missing
        found |= late
    assert not found or any(seal.late for seal in seals)
    return found


def assert_streams_right(log: Log) -> None:
    """Seals, selections and seeds are those of a plain fold."""
    seals, selections, seeds = derived(log)
    demanded = plain_seals(log)
    assert [_seal(seal) for seal in seals] == [_demanded(seal) for seal in demanded]
    chosen = oracle.select(demanded)
    assert [(c.epoch, c.step, _seeds(c), c.digest) for c in selections] == [
        (c.epoch, c.step, c.seeds, c.digest) for c in chosen
    ]
    assert sorted((seed.step, seed.rank, seed.seed, seed.task) for seed in seeds) == [
        (c.step, rank, seed, task) for c in chosen for seed, task, _, _, _, rank, _ in c.seeds
    ]


def assert_pool_right(log: Log) -> None:
    """The decisions and the digest of every boundary are those of a plain fold."""
    seals, pools = plain_seals(log), decided(log).pools
    boundaries = pool_oracle.boundaries_of(_all(log, Topic.POOL, 0), seals, oracle.select(seals))
    assert [b.opened.epoch for b in boundaries] == list(range(len(pools)))
    for boundary in boundaries:
        assert boundary.recorded is not None and boundary.written == boundary.decisions()
        assert boundary.recorded.digest == boundary.after.digest == pools[boundary.opened.epoch]


def plain_seals(log: Log) -> list[oracle.Seal]:
    """What a plain fold of `rods.rollouts` from offset 0 says, in the order of steps and partitions."""
    seals = [s for part in _partitions(log) for s in oracle.measure(part, _all(log, Topic.ROLLOUTS, part))]
    return sorted(seals, key=lambda seal: (seal.step, seal.partition))


def decided(log: Log) -> Decided:
    """The decision content of a run."""
    seals, selections, seeds = derived(log)
    return Decided(
        [(seal.step, seal.partition, seal.digest) for seal in seals],
        [(closed.step, closed.digest) for closed in selections],
        sorted((seed.step, seed.rank, seed.seed) for seed in seeds),
        {event.epoch: event.digest for _, event in _events(log, Topic.POOL) if isinstance(event, PoolMaterialized)},
    )


def derived(log: Log) -> Derived:
    """What streams wrote; two copies of one fact must be the same bytes."""
    by_seal: dict[tuple[int, int], list[PartitionSealed]] = {}
    for chunk in _once(log, Topic.SEALS, PartitionSealed):
        by_seal.setdefault((chunk.step, chunk.partition), []).append(chunk)
    seals = [join_chunks(sorted(parts, key=lambda part: part.chunk)) for _, parts in sorted(by_seal.items())]
    selections = sorted(_once(log, Topic.SEALS, SelectionClosed), key=lambda closed: closed.step)
    for partition, seed in _events(log, Topic.SEEDS):
        assert partition == partition_of(seed.task, len(_partitions(log))), seed
    return Derived(seals, selections, _once(log, Topic.SEEDS, BoundarySeedSelected))


def assert_whole(log: Log) -> None:
    """No offset is missing and no offset is there twice."""
    for place, records in log.items():
        assert [record.offset for record in records] == list(range(len(records))), place


def assert_archived(trial: Trial) -> None:
    """The archive holds the log, record by record."""
    for (topic, partition), records in trial.log.items():
        kept = list(read_partition(trial.archive, topic, partition))
        assert [(record.offset, record.value) for record in kept] == [(r.offset, r.value) for r in records], topic


def assert_no_result_lost(log: Log, seals: Sequence[PartitionSealed]) -> None:
    """A result that stands before the barrier of its step is in the seal: the first of its group, slot by slot."""
    sealed = {group.group: group for seal in seals for group in seal.groups}
    assert sum(len(seal.groups) for seal in seals) == len(sealed), "a group is counted twice"
    for partition in _partitions(log):
        closed, first, newest = 0, dict[str, RolloutFinished](), 0
        for _, event in _events(log, Topic.ROLLOUTS, partition):
            newest = max(newest, getattr(event, "generation", 0))
            if isinstance(event, RolloutFinished):
                first.setdefault(event.group, event)
            elif isinstance(event, BarrierReached) and event.step == closed + 1 and event.generation == newest:
                closed = event.step
                for expected in event.expected:
                    assert_counted(sealed[expected.group], first.get(expected.group))


def assert_counted(group: Any, result: RolloutFinished | None) -> None:
    """The sealed group is the result, whole; a group without a result before the barrier is missing."""
    if result is None:
        assert group.execution == "" and set(group.passed) == {None}
        return
    assert group.execution == result.execution
    passed = tuple(slot.turns_passed if slot.status == "finished" else None for slot in result.slots)
    assert group.passed == passed


def _once(log: Log, topic: Topic, kind: type[Fact]) -> list[Fact]:
    found: dict[tuple[str, ...], Any] = {}
    for _, event in _events(log, topic):
        if isinstance(event, kind):
            first = found.setdefault(event.natural_key, event)
            assert first == event, "a derived fact was written again with another content"
    return list(found.values())


def _events(log: Log, topic: Topic, partition: int | None = None) -> Iterable[tuple[int, Any]]:
    for (name, number), records in log.items():
        if name is topic and partition in (None, number):
            for record in records:
                event = decoded(record)
                if event is not None:
                    yield number, event


def _partitions(log: Log) -> list[int]:
    return sorted(number for topic, number in log if topic is Topic.ROLLOUTS)


def decoded(record: LogRecord) -> Any:
    """Its event; None where it holds none."""
    try:
        return decode(record.value or b"")
    except UndecodableError:
        return None


def _all(log: Log, topic: Topic, partition: int) -> list[Any]:
    """An event or None for every offset."""
    return [decoded(record) for record in log[topic, partition]]


def _seal(seal: PartitionSealed) -> tuple[Any, ...]:
    groups = [(g.group, g.execution, list(g.passed), list(g.reasons), g.zone, g.boundary) for g in seal.groups]
    counts = (seal.late, seal.duplicate, seal.refused)
    return (seal.epoch, seal.step, seal.partition, seal.barrier_offset, seal.digest, groups, counts)


def _demanded(seal: oracle.Seal) -> tuple[Any, ...]:
    groups = [(g.group, g.execution, g.passed, g.reasons, g.zone, g.boundary) for g in seal.groups]
    return (seal.epoch, seal.step, seal.partition, seal.offset, seal.digest(), groups, seal.counts)


def _seeds(closed: SelectionClosed) -> list[list[Any]]:
    return [[s.seed, s.task, s.category, s.phi, s.variance, s.rank, list(s.evidence)] for s in closed.seeds]
