"""Whether what stands in the final log is what a plain fold of it says."""

from typing import Any, NamedTuple

from schemas.epochs import LearnerStarted, StepClosed
from schemas.rollouts import TaskMeasured
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed
from schemas.topics import Topic, partition_of
from tests.simulation import oracle, pool_oracle
from tests.simulation.log import SEALS, Place
from tests.simulation.world import ViolationError, World


class Digests(NamedTuple):
    """What was decided: of each seal by step and partition, of each selection, of each pool."""

    seals: tuple[str, ...]
    selections: tuple[str, ...]
    pools: tuple[str, ...]


def check(world: World) -> Digests:
    """The digests. Raises ViolationError."""
    events = {place: [world.wire.read(value) for value in values] for place, values in world.log.records.items()}
    partitions = world.log.partitions
    seals = sorted(
        [seal for p in range(partitions) for seal in oracle.measure(p, events[Topic.ROLLOUTS, p])],
        key=lambda seal: (seal.step, seal.partition),
    )
    selections = oracle.select(seals)
    _check_seals(events[SEALS], seals)
    _check_selections(events[SEALS], selections)
    _check_seeds(events, selections, partitions)
    _check_views(events, seals, partitions)
    _check_steps(events[Topic.EPOCHS, 0], seals)
    boundaries = pool_oracle.boundaries_of(events[Topic.POOL, 0], seals, selections)
    _check_pool(boundaries, world)
    return Digests(
        tuple(seal.digest() for seal in seals),
        tuple(selection.digest for selection in selections),
        tuple(boundary.after.digest for boundary in boundaries),
    )


def same(what: str, found: object, expected: object) -> None:
    """Raises ViolationError where two values differ."""
    if found != expected:
        raise ViolationError(f"{what}: the log says {found!r}, a plain fold of it {expected!r}")


def _check_seals(log: list[Any], seals: list[oracle.Seal]) -> None:
    """Every seal ever written, also by a worker that had lost its partition, is the one that the log demands."""
    expected = {(seal.step, seal.partition): seal for seal in seals}
    whole: dict[tuple[int, int], dict[int, PartitionSealed]] = {}
    for chunk in [event for event in log if isinstance(event, PartitionSealed)]:
        key = (chunk.step, chunk.partition)
        if key not in expected:
            raise ViolationError(f"a seal of step {key[0]}, partition {key[1]} that no barrier asked for")
        same(f"seal {key}, digest", chunk.digest, expected[key].digest())
        known = whole.setdefault(key, {}).setdefault(chunk.chunk, chunk)
        same(f"seal {key}, chunk {chunk.chunk}", chunk, known)
    for key, seal in expected.items():
        chunks = whole.get(key, {})
        if not chunks or sorted(chunks) != list(range(chunks[min(chunks)].chunks)):
            raise ViolationError(f"no whole seal of step {key[0]}, partition {key[1]}")
        _check_seal(key, [chunks[number] for number in sorted(chunks)], seal)


def _check_seal(key: object, chunks: list[PartitionSealed], seal: oracle.Seal) -> None:
    first = chunks[0]
    head = (first.epoch, first.partitions, first.barrier_offset, first.last_of_epoch, first.rules)
    same(f"seal {key}", head, (seal.epoch, seal.partitions, seal.offset, seal.last_of_epoch, seal.rules))
    counts = (first.late, first.duplicate, first.refused)
    same(f"seal {key}, late, duplicate and refused", counts, seal.counts)
    groups = [[*_head(g), list(g.passed), list(g.reasons), _content(g.state)] for c in chunks for g in c.groups]
    demanded = [[*_head(g), g.passed, g.reasons, g.state.content(g.task)] for g in seal.groups]
    same(f"seal {key}, groups", groups, demanded)
    states = [_content(state) for chunk in chunks for state in chunk.state]
    same(f"seal {key}, states", states, [seal.states[task].content(task) for task in sorted(seal.states)])


def _head(group: Any) -> list[Any]:
    return [group.group, group.task, group.purpose, group.category, group.execution, group.zone, group.boundary]


def _content(state: Any) -> list[Any]:
    window = [[g.group, g.n, g.sum_passed, g.sum_squares, g.turns_total] for g in state.window]
    return [state.task, state.category, window, state.visits, state.low_streak, state.high_streak]


def _check_selections(log: list[Any], selections: list[oracle.Selection]) -> None:
    expected = {selection.step: selection for selection in selections}
    closed = [event for event in log if isinstance(event, SelectionClosed)]
    same("steps selected", sorted({event.step for event in closed}), sorted(expected))
    for event in closed:
        selection = expected[event.step]
        seeds = [[s.seed, s.task, s.category, s.phi, s.variance, s.rank, list(s.evidence)] for s in event.seeds]
        found = (event.epoch, seeds, event.digest)
        same(f"selection of step {event.step}", found, (selection.epoch, selection.seeds, selection.digest))


def _check_seeds(events: dict[Place, list[Any]], selections: list[oracle.Selection], partitions: int) -> None:
    found = {
        (place[1], event.step, event.seed, event.task, event.rank)
        for place, records in events.items()
        if place[0] is Topic.SEEDS
        for event in records
        if isinstance(event, BoundarySeedSelected)
    }
    expected = {
        (partition_of(task, partitions), selection.step, seed, task, rank)
        for selection in selections
        for seed, task, _, _, _, rank, _ in selection.seeds
    }
    same("seeds", found, expected)


def _check_views(events: dict[Place, list[Any]], seals: list[oracle.Seal], partitions: int) -> None:
    """Every group that a seal counts was shown, on the partition that it came from."""
    shown = {
        (partition, event.group)
        for partition in range(partitions)
        for event in events[Topic.MEASUREMENTS, partition]
        if isinstance(event, TaskMeasured)
    }
    counted = {(seal.partition, group.group) for seal in seals for group in seal.groups if group.execution}
    if not counted <= shown:
        raise ViolationError(f"sealed and never shown: {counted - shown}")


def _check_steps(log: list[Any], seals: list[oracle.Seal]) -> None:
    """A step is what its seals say, whichever learner closes it."""
    generation = 0
    closed: dict[int, tuple[int, int]] = {}
    for event in log:
        if isinstance(event, LearnerStarted):
            generation = max(generation, event.generation)
        elif isinstance(event, StepClosed) and event.generation >= generation:
            closed.setdefault(event.step, (event.measured, event.missing))
    expected: dict[int, list[bool]] = {seal.step: [] for seal in seals}
    for seal in seals:
        expected[seal.step] += [group.live for group in seal.groups if group.purpose == "train"]
    for step, found in closed.items():
        live = expected[step]
        same(f"step {step}, measured and missing", found, (sum(live), len(live) - sum(live)))


def _check_pool(boundaries: list[pool_oracle.Boundary], world: World) -> None:
    for boundary in boundaries:
        epoch, recorded = boundary.opened.epoch, boundary.recorded
        assert recorded is not None
        same(f"decisions of epoch {epoch}", boundary.written, boundary.decisions())
        same(f"members of epoch {epoch}", list(recorded.members), sorted(boundary.after.members))
        same(f"queue of epoch {epoch}", list(recorded.queue), boundary.queue)
        same(f"pool of epoch {epoch}", recorded.digest, boundary.after.digest)
    last = boundaries[-1].after if boundaries else None
    same("epochs", last.epoch if last else None, world.schedule.setting.rules.epochs)
    for learner in world.learners.values():
        if learner.finished and last is not None:
            same(f"{learner.name}'s pool", learner.learner.pool.digest, last.digest)
            same(f"{learner.name}'s members", sorted(learner.learner.pool.members), sorted(last.members))
