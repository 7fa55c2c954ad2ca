"""One pass over `rods.seals`: selections recomputed from the recorded seals, step by step as far as it is asked.

Each fold reads the recorded events, so that a divergence at one step does not repeat itself at every later one.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from sys import intern
from typing import Any, NamedTuple

from schemas.codec import decode, decode_expecting, kind_of_frame
from schemas.seals import BoundarySeedSelected, PartitionSealed, SealedGroup, SelectionClosed, TaskState
from schemas.topics import Topic
from streams.audit.compare.divergence import ABSENT, Divergence, Stage, difference, shown
from streams.audit.load.source import LogSource, Placed, events
from streams.errors import StreamError
from streams.pool.evidence import SealedSteps
from streams.select.fold import SelectState, evolve, skip


class RecordedSeal(NamedTuple):
    """A recorded chunk: its place, and the sha256 of its frame."""

    offset: int
    epoch: int
    step: int
    partition: int
    chunk: int
    barrier_offset: int
    rules: str
    frame: bytes


class RecordedSelection(NamedTuple):
    """A recorded selection that counts."""

    offset: int
    epoch: int
    step: int
    digest: str


@dataclass(slots=True)
class _Known:
    """The states of a partition's tasks, as its groups tell them. taken: those in the chunks of a seal so far."""

    states: dict[str, TaskState]
    taken: int = 0


class _Seals:
    """Decodes the seals of a log in order. At an epoch's end a seal carries the state of every task of its partition,
    which the groups of the seals before mostly tell already."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Known] = {}

    def decoded(self, frame: bytes) -> Any:
        """The event in a frame. Raises as `decode`."""
        if kind_of_frame(frame) != PartitionSealed.KIND:
            return decode(frame)
        seal: PartitionSealed = decode_expecting(frame, "state", self._expected)
        known = self._known(seal.partition, seal.groups)
        known.taken = (known.taken if seal.chunk else 0) + len(seal.state)
        return seal

    def _expected(self, record: dict[str, Any]) -> list[TaskState]:
        known = self._known(record["partition"], record["groups"])
        return [known.states[task] for task in sorted(known.states)][known.taken if record["chunk"] else 0 :]

    def _known(self, partition: int, groups: Iterable[SealedGroup]) -> "_Known":
        known = self._partitions.setdefault(partition, _Known({}))
        known.states.update((group.task, group.state) for group in groups)
        return known


class SealedPass:
    """The fold of `rods.seals` as the audit goes along. Evidence for the pool is kept in `log`; `observe` sees every
    recorded chunk."""

    def __init__(
        self, source: LogSource, to_epoch: int | None = None, observe: Callable[[PartitionSealed], None] | None = None
    ) -> None:
        self.source, self.to_epoch, self.observe = source, to_epoch, observe
        self.log = SealedSteps()
        self.state = SelectState()
        self.seals: list[RecordedSeal] = []
        self.selections: list[RecordedSelection] = []
        self.seeds: dict[tuple[int, str], BoundarySeedSelected] = {}
        self.divergences: list[Divergence] = []
        self._events: Iterator[Placed] = self._read()

    def _read(self) -> Iterator[Placed]:
        if self.source.partitions(Topic.SEALS):
            yield from events(self.source, Topic.SEALS, 0, decoded=_Seals().decoded)

    def advance(self, step: int) -> bool:
        """Reads until a step is selected; whether it is."""
        while self.log.closed < step:
            one = next(self._events, None)
            if one is None:
                return False
            self._take(one)
        return True

    def finish(self) -> None:
        """Reads to the end, or to what lies beyond `to_epoch` or does not fold."""
        while (one := next(self._events, None)) is not None:
            self._take(one)

    def _take(self, one: Placed) -> None:
        offset, value, event = one
        if isinstance(event, PartitionSealed | SelectionClosed) and self._beyond(event.epoch):
            self._events = iter(())
            return
        if event is None or not isinstance(event, PartitionSealed | SelectionClosed):
            self.state = skip(self.state, offset)
            return
        if isinstance(event, PartitionSealed):
            if self.observe is not None:
                self.observe(event)
            frame = hashlib.sha256(value).digest()
            self.seals.append(
                RecordedSeal(
                    offset,
                    event.epoch,
                    event.step,
                    event.partition,
                    event.chunk,
                    event.barrier_offset,
                    intern(event.rules),
                    frame,
                )
            )
        self._fold(offset, value, event)

    def _beyond(self, epoch: int) -> bool:
        return self.to_epoch is not None and epoch > self.to_epoch

    def _fold(self, offset: int, value: bytes, event: PartitionSealed | SelectionClosed) -> None:
        before = self.state
        try:
            selected = evolve(before, offset, event)
        except StreamError as error:
            self._add(offset, event, "", event.KIND, str(error))
            self._events = iter(())
            return
        self.state = selected.state
        self.log.evolve(offset, event)
        if isinstance(event, SelectionClosed):
            self._compare(offset, value, event, before)
            for seed in selected.seeds:
                self.seeds[event.step, seed.event.task] = seed.event

    def _compare(self, offset: int, value: bytes, event: SelectionClosed, before: SelectState) -> None:
        if event.step <= before.closed:
            if event.step == before.closed and event.digest != before.digest:
                self._add(offset, event, "digest", shown(event.digest), shown(before.digest))
            return
        self.selections.append(RecordedSelection(offset, event.epoch, event.step, event.digest))
        if before.proposed is None or before.proposed.step != event.step:
            why = f"{ABSENT}: step {before.closed + 1} is next, and a step is selected once its seals are whole"
            self._add(offset, replace(event, step=before.closed + 1), "step", str(event.step), why)
            return
        found = difference(value, before.proposed)
        if found is not None:
            groups = [
                f"group {group.group} of {group.task}: passed {list(group.passed)} of {group.turns_total}, {group.zone}"
                for seal in before.seals.get(event.step, {}).values()
                for group in seal.groups
                if group.boundary
            ]
            self._add(offset, event, *found, groups)

    def _add(
        self,
        offset: int,
        event: PartitionSealed | SelectionClosed,
        path: str,
        recorded: str,
        recomputed: str,
        evidence: Sequence[str] = (),
    ) -> None:
        place = self.source.place(Topic.SEALS, 0, offset)
        self.divergences.append(
            Divergence(
                Stage.SELECTION,
                event.epoch,
                event.step,
                place,
                f"the selection of step {event.step}",
                path,
                recorded,
                recomputed,
                task=_task_at(event, path),
                evidence=tuple(evidence[:20]),
            )
        )


def _task_at(event: PartitionSealed | SelectionClosed, path: str) -> str:
    """The task of the seed that a path leads to."""
    if (
        isinstance(event, SelectionClosed)
        and path.startswith("seeds[")
        and (number := int(path[6 : path.index("]")])) < len(event.seeds)
    ):
        return event.seeds[number].task
    return ""
