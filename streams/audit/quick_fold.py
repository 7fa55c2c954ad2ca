"""The fold of measure in the bytes of what it reads and writes, for logs of millions of attempts.

The same decisions, by the same rules (`streams.measure`): zones and streaks are asked of them, once for each outcome
that there is. What differs is what is held: a task's state as its seals write it, so that the states of all tasks at
an epoch's end are put together and not encoded again. Nothing is concluded from it but that a seal's bytes are the
recorded ones; where they are not, the fold that decided is asked (`streams.audit.recompute.measure.seals_at`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from schemas.codec import encode_like
from schemas.envelope import Producer, derive
from schemas.rollouts import BarrierReached, ExpectedGroup, Purpose, RolloutFinished
from schemas.rules import Rules, canonical_json
from schemas.seals import PartitionSealed, TaskState, WindowGroup, Zone
from schemas.topics import Topic
from streams.audit.quick_result import Moments, Quick, Shape, Slots, number, quick_event, shape_of, slots_of, written
from streams.audit.quick_task import INTEGER, TEXT, Task, Visit, json_text, pooled_moments, state_of, task_of, visit_of
from streams.audit.quick_view import ViewWriter
from streams.audit.verify.grammar import text_of
from streams.errors import OffsetGapError
from streams.measure.barrier import invalid, parsed_rules
from streams.measure.exact import pooled
from streams.measure.fold import MAX_OPEN_RESULTS, evolve, skip
from streams.measure.outcome import missing
from streams.measure.seal import chunk_room
from streams.measure.state import MeasureState
from streams.measure.zones import is_boundary, zone_of

_EVALUATE = written(Purpose.EVALUATE.value)


class Chunk(NamedTuple):
    """A seal's chunk. frame: sha256 of its frame."""

    epoch: int
    step: int
    number: int
    barrier_offset: int
    frame: bytes


class _Item(NamedTuple):
    """A group or a state of a seal."""

    avro: bytes
    bound: int


class _Verdict(NamedTuple):
    """What the rules say of a window's moments. zone: as Avro and as canonical JSON."""

    low: bool
    high: bool
    zone: tuple[bytes, bytes]
    boundary: bool


class QuickFold:
    """One partition. like: the header of the recorded seals, which must be of the newest version. views: takes the
    view of each accepted result; None: there is no need of them."""

    def __init__(self, partition: int, like: bytes, views: ViewWriter | None = None) -> None:
        self._like, self._views = like, views
        self.state = MeasureState(partition)
        """Without tasks and results, which are held here."""
        self._tasks: dict[bytes, Task] = {}
        self._names: list[bytes] = []
        self._results: dict[Shape, Quick] = {}
        self._rules = self.state.rules
        self._verdicts: dict[Moments, _Verdict] = {}
        self.next_offset = 0

    def result(self, offset: int, result: Quick) -> bool:
        """Takes a result; whether it is accepted. Raises OffsetGapError."""
        if not self._is_next(offset):
            return False
        state, results = self.state, self._results
        if result.shape.purpose == _EVALUATE:
            if self._views is not None and result.envelope is not None:
                self._views.write(result, 0, b"\0")
            return False
        if result.step <= state.step:
            self.state = state.counting(late=1)
        elif result.step > state.step + 1:
            self.state = state.counting(refused=1)
        elif result.shape in results:
            self.state = state.counting(duplicate=1)
        elif len(results) >= MAX_OPEN_RESULTS:
            self.state = state.counting(refused=1)
        else:
            results[result.shape] = result
            if self._views is not None and result.envelope is not None:
                self._views.write(result, *self._seen(result))
            return True
        return False

    def _seen(self, result: Quick) -> tuple[int, bytes]:
        """A task's visits, and its zone as Avro, if the step closed now."""
        before, moments = self._tasks.get(result.shape.task), result.moments
        window = before.window if before else ()
        visits = before.visits if before else 0
        if moments[0]:
            window, visits = (*window, visit_of(result.shape.group, moments))[-self._rules.measure.window :], visits + 1
        return visits, self._verdict(window, self._rules).zone[0] if window else _NONE[0]

    def event(self, offset: int, event: Any) -> list[Chunk]:
        """Takes a decoded event; the chunks of the seal that it leads to. Raises OffsetGapError."""
        if not self._is_next(offset):
            return []
        state = replace(self.state, next_offset=offset)
        if isinstance(event, BarrierReached) and (rules := _rules_of(state, event)) is not None:
            return self._close(replace(state, generation=event.generation), offset, event, rules)
        evolved = evolve(replace(state, tasks=self._tasks_of(event)), offset, event)
        counts = True
        if evolved.state.results:
            assert isinstance(event, RolloutFinished)
            self.next_offset = offset
            counts = self.result(offset, quick_event(event))
        else:
            self.state = replace(evolved.state, tasks={})
        if counts and self._views is not None and evolved.measured is not None:
            self._views.encode(evolved.measured)
        return []

    def _tasks_of(self, event: Any) -> dict[str, TaskState]:
        """What the fold of measure needs to make the view of a result."""
        if self._views is None or not isinstance(event, RolloutFinished):
            return {}
        task = self._tasks.get(written(event.task))
        return {event.task: state_of(event.task, event.category, task)} if task else {}

    def skip(self, offset: int) -> None:
        """Passes an undecodable record. Raises OffsetGapError."""
        if self._is_next(offset):
            self.state = skip(replace(self.state, next_offset=offset), offset)

    def _is_next(self, offset: int) -> bool:
        if offset > self.next_offset:
            raise OffsetGapError(Topic.ROLLOUTS, self.state.partition, self.next_offset, offset)
        if offset < self.next_offset:
            return False
        self.next_offset = offset + 1
        return True

    def _close(self, state: MeasureState, offset: int, barrier: BarrierReached, rules: Rules) -> list[Chunk]:
        if rules != self._rules:
            self._rules, self._verdicts = rules, {}
        digest = hashlib.sha256()
        head = ["seal", barrier.epoch, barrier.step, barrier.partition, barrier.partitions]
        digest.update(canonical_json([*head, barrier.last_of_epoch, barrier.rules]).encode() + b"\n")
        groups = []
        for expected in sorted(barrier.expected, key=lambda group: group.task):
            item, content = self._group(expected, rules)
            groups.append(item)
            digest.update(content)
        states: list[Task] = []
        if barrier.last_of_epoch:
            states = [self._tasks[name] for name in self._in_order()]
            lines = b']\n["state",'.join([task.json for task in states])
            digest.update(b'["state",%s]\n' % lines if states else b"")
        counts = state.counts
        seal = PartitionSealed(
            barrier.epoch,
            barrier.step,
            barrier.partition,
            barrier.partitions,
            0,
            1,
            offset,
            barrier.last_of_epoch,
            barrier.rules,
            barrier.pool_offset,
            digest.hexdigest(),
            (),
            (),
            counts.late,
            counts.duplicate,
            counts.refused + counts.unexpected + len(self._results),
            state.generation,
        )
        self._results = {}
        self.state = MeasureState(
            state.partition,
            barrier.partitions,
            offset + 1,
            barrier.epoch,
            barrier.step,
            state.generation,
            rules,
        )
        return list(self._chunks(seal, barrier, groups, states))

    def _in_order(self) -> list[bytes]:
        """The tasks, ordered by their names."""
        if len(self._names) < len(self._tasks):
            self._names = sorted(self._tasks, key=text_of)
        return self._names

    def _group(self, expected: ExpectedGroup, rules: Rules) -> tuple[_Item, bytes]:
        """A group as the seal writes it, and as the digest covers it; the task moves on."""
        shape = shape_of(*_shape(expected))
        result = self._results.pop(shape, None)
        if result is not None:
            execution, moments, slots = result.execution, result.moments, result.slots
        else:
            execution, moments, slots = b"\0", None, _missing(expected)
        task, verdict = self._moved(shape, moments, rules)
        zone = verdict.zone if verdict else _NONE
        boundary = bool(verdict and verdict.boundary and moments and moments[0])
        avro = b"".join(
            (
                shape.group,
                shape.task,
                shape.purpose,
                shape.category,
                execution,
                shape.turns_total,
                slots.passed,
                slots.reasons,
                slots.versions,
                slots.trajectories,
                zone[0],
                b"\1" if boundary else b"\0",
                task.avro,
            )
        )
        texts = (shape.group, shape.task, shape.purpose, shape.category, execution, zone[0])
        bound = sum([len(text_of(text)) for text in texts]) + 6 * TEXT + expected.k * (2 * INTEGER + 2)
        bound += slots.text_bytes + 2 * TEXT * expected.k + task.bound + 8 * INTEGER
        content = b'["group",%s,%s,%s,%s,%d]\n[%s,%s,%s,%s,%s]\n' % (
            json_text(shape.group),
            json_text(shape.task),
            json_text(shape.purpose),
            json_text(shape.category),
            expected.turns_total,
            slots.passed_json,
            slots.reasons_json,
            zone[1],
            b"true" if boundary else b"false",
            task.json,
        )
        return _Item(avro, bound), content

    def _moved(self, shape: Shape, moments: Moments | None, rules: Rules) -> tuple[Task, _Verdict | None]:
        """The task after a group, and what the rules say of its window (see `streams.measure.zones`)."""
        before = self._tasks.get(shape.task)
        visits, low, high = (before.visits, before.low, before.high) if before else (0, 0, 0)
        window = before.window if before else ()
        if moments is None or not moments[0]:
            verdict = self._verdict(window, rules) if window else None
        else:
            window = (*window, visit_of(shape.group, moments))[-rules.measure.window :]
            verdict = self._verdict(window, rules)
            visits, low, high = visits + 1, low + 1 if verdict.low else 0, high + 1 if verdict.high else 0
        task = task_of(shape.task, shape.category, window, visits, low, high)
        self._tasks[shape.task] = task
        return task, verdict

    def _verdict(self, window: Sequence[Visit], rules: Rules) -> _Verdict:
        moments = pooled_moments(window)
        verdict = self._verdicts.get(moments)
        if verdict is None:
            sample = [WindowGroup("", *moments)]
            figures, zone = pooled(sample), zone_of(sample, rules)
            verdict = _Verdict(
                figures.below(rules.pool.drift_low),
                figures.above(rules.pool.drift_high),
                _zone(zone),
                is_boundary(sample, zone, rules),
            )
            self._verdicts[moments] = verdict
        return verdict

    def _chunks(
        self, seal: PartitionSealed, barrier: BarrierReached, groups: list[_Item], states: list[Task]
    ) -> Iterator[Chunk]:
        packs = list(_packs(groups, states, chunk_room(seal.rules)))
        for place, (some_groups, some_states) in enumerate(packs):
            chunk = derive(replace(seal, chunk=place, chunks=len(packs)), barrier.envelope, Producer.MEASURE)
            empty = encode_like(chunk, self._like)
            end = empty.index(written(seal.digest)) + len(written(seal.digest))
            frame = hashlib.sha256(empty[:end])
            frame.update(_array(some_groups))
            frame.update(_array(some_states))
            frame.update(empty[end + 2 :])
            yield Chunk(seal.epoch, seal.step, place, seal.barrier_offset, frame.digest())


def _rules_of(state: MeasureState, event: BarrierReached) -> Rules | None:
    """The rules of a barrier that closes the open step; None where it is none (see `streams.measure.fold`)."""
    if event.generation < state.generation or event.step <= state.step:
        return None
    rules = parsed_rules(event.rules)
    return None if rules is None or invalid(state, event) else rules


def _shape(expected: ExpectedGroup) -> tuple[str, str, str, int, int, str]:
    return (
        expected.group,
        expected.task,
        expected.purpose,
        expected.k,
        expected.turns_total,
        expected.category,
    )


def _missing(expected: ExpectedGroup) -> Slots:
    outcome = missing(expected.group, expected.k, expected.turns_total)
    return slots_of(outcome, (0,) * expected.k, ("",) * expected.k)


def _zone(zone: Zone) -> tuple[bytes, bytes]:
    return written(zone.value), canonical_json(zone.value).encode()


_NONE = _zone(Zone.NONE)


_Items = Sequence[_Item | Task]


def _array(items: _Items) -> bytes:
    return b"".join((number(len(items)), *[item.avro for item in items], b"\0")) if items else b"\0"


def _packs(groups: _Items, states: _Items, room: int) -> Iterator[tuple[_Items, _Items]]:
    """As `streams.measure.seal` fills its chunks."""
    packed: tuple[list[_Item | Task], list[_Item | Task]] = ([], [])
    used = 0
    both: tuple[_Items, _Items] = (groups, states)
    for place, items in enumerate(both):
        for item in items:
            if used + item.bound > room and (packed[0] or packed[1]):
                yield packed
                packed, used = ([], []), 0
            used += item.bound
            packed[place].append(item)
    yield packed
