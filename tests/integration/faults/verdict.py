"""Whether a run left the right log: by a plain fold of it from offset 0, and by the undisturbed run."""

from collections.abc import Iterable, Sequence
from typing import Any

from schemas.codec import decode
from schemas.errors import UndecodableError
from schemas.pool import PoolMaterialized
from schemas.rollouts import BarrierReached, RolloutFinished
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed
from schemas.topics import Topic, partition_of
from streams.archive.read import read_partition
from streams.log_reader import LogRecord
from streams.measure.seal import join_chunks
from streams.pool.replay import replay_pools
from tests.integration.faults.trial import PARTITIONS, Trial
from tests.simulation import oracle


def assert_right(trial: Trial) -> None:
    """Everything that can be said of one run alone."""
    assert_whole(trial)
    assert_archived(trial)
    seals, selections, seeds = derived(trial)
    assert_no_result_lost(trial, seals)
    demanded = plain_seals(trial)
    assert [_seal(seal) for seal in seals] == [_demanded(seal) for seal in demanded]
    chosen = oracle.select(demanded)
    assert [(c.epoch, c.step, _seeds(c), c.digest) for c in selections] == [
        (c.epoch, c.step, c.seeds, c.digest) for c in chosen
    ]
    assert sorted((seed.step, seed.rank, seed.seed, seed.task) for seed in seeds) == [
        (c.step, rank, seed, task) for c in chosen for seed, task, _, _, _, rank, _ in c.seeds
    ]
    boundaries = oracle.pool(_all(trial, Topic.POOL, 0), demanded, chosen)
    assert [b.opened.epoch for b in boundaries] == list(range(len(decided(trial).pools)))
    for boundary in boundaries:
        assert boundary.recorded is not None and boundary.written == boundary.decisions()
        assert boundary.recorded.digest == boundary.after.digest == decided(trial).pools[boundary.opened.epoch]
    assert all(pool.agrees for pool in replay_pools(trial.archive))


def plain_seals(trial: Trial) -> list[oracle.Seal]:
    """What a plain fold of `rods.rollouts` from offset 0 says, in the order of steps and partitions."""
    seals = [s for part in range(PARTITIONS) for s in oracle.measure(part, _all(trial, Topic.ROLLOUTS, part))]
    return sorted(seals, key=lambda seal: (seal.step, seal.partition))


class Decided(tuple[Any, ...]):
    """seals, selections, seeds, pools: what two runs with one seed agree on."""

    @property
    def pools(self) -> Any:
        return self[-1]


def decided(trial: Trial) -> Decided:
    """The decision content of a run: no offsets, clocks, executions or generations."""
    seals, selections, seeds = derived(trial)
    pools = {
        event.epoch: event.digest for _, event in _events(trial, Topic.POOL) if isinstance(event, PoolMaterialized)
    }
    return Decided(
        (
            [(seal.step, seal.partition, seal.digest) for seal in seals],
            [(closed.step, closed.digest) for closed in selections],
            sorted((seed.step, seed.rank, seed.seed) for seed in seeds),
            pools,
        )
    )


def derived(trial: Trial) -> tuple[list[PartitionSealed], list[SelectionClosed], list[BoundarySeedSelected]]:
    """What streams wrote, each once; two copies of one fact must be the same bytes."""
    chunks = list(_once(trial, Topic.SEALS, PartitionSealed).values())
    by_seal: dict[tuple[int, int], list[PartitionSealed]] = {}
    for chunk in chunks:
        by_seal.setdefault((chunk.step, chunk.partition), []).append(chunk)
    seals = [join_chunks(sorted(parts, key=lambda part: part.chunk)) for _, parts in sorted(by_seal.items())]
    selections = sorted(_once(trial, Topic.SEALS, SelectionClosed).values(), key=lambda closed: closed.step)
    for partition, seed in _events(trial, Topic.SEEDS):
        assert partition == partition_of(seed.task, PARTITIONS), seed
    return seals, selections, list(_once(trial, Topic.SEEDS, BoundarySeedSelected).values())


def assert_whole(trial: Trial) -> None:
    """No offset is missing and no offset is there twice."""
    for place, records in trial.log.items():
        assert [record.offset for record in records] == list(range(len(records))), place


def assert_archived(trial: Trial) -> None:
    """The archive holds the log, record by record."""
    for (topic, partition), records in trial.log.items():
        kept = list(read_partition(trial.archive, topic, partition))
        assert [(record.offset, record.value) for record in kept] == [(r.offset, r.value) for r in records], topic


def assert_no_result_lost(trial: Trial, seals: Sequence[PartitionSealed]) -> None:
    """A result that stands before the barrier of its step is in the seal: the first of its group, slot by slot."""
    sealed = {(group.group): group for seal in seals for group in seal.groups}
    assert sum(len(seal.groups) for seal in seals) == len(sealed), "a group is counted twice"
    for partition in range(PARTITIONS):
        closed, first, newest = 0, dict[str, RolloutFinished](), 0
        for _, event in _events(trial, Topic.ROLLOUTS, partition):
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


def _once(trial: Trial, topic: Topic, kind: type[Any]) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for _, event in _events(trial, topic):
        if isinstance(event, kind):
            first = found.setdefault(event.natural_key, event)
            assert first == event, "a derived fact was written again with another content"
    return found


def _events(trial: Trial, topic: Topic, partition: int | None = None) -> Iterable[tuple[int, Any]]:
    for (name, number), records in trial.log.items():
        if name is topic and partition in (None, number):
            for record in records:
                event = _decoded(record)
                if event is not None:
                    yield number, event


def _decoded(record: LogRecord) -> Any:
    try:
        return decode(record.value or b"")
    except UndecodableError:
        return None


def _all(trial: Trial, topic: Topic, partition: int) -> list[Any]:
    """An event or None for every offset."""
    return [_decoded(record) for record in trial.log[topic, partition]]


def _seal(seal: PartitionSealed) -> tuple[Any, ...]:
    groups = [(g.group, g.execution, list(g.passed), list(g.reasons), g.zone, g.boundary) for g in seal.groups]
    counts = (seal.late, seal.duplicate, seal.refused)
    return (seal.epoch, seal.step, seal.partition, seal.barrier_offset, seal.digest, counts, groups)


def _demanded(seal: oracle.Seal) -> tuple[Any, ...]:
    groups = [(g.group, g.execution, g.passed, g.reasons, g.zone, g.boundary) for g in seal.groups]
    counts = (seal.late, seal.duplicate, seal.refused)
    return (seal.epoch, seal.step, seal.partition, seal.offset, seal.digest(), counts, groups)


def _seeds(closed: SelectionClosed) -> list[list[Any]]:
    return [[s.seed, s.task, s.category, s.phi, s.variance, s.rank, list(s.evidence)] for s in closed.seeds]
