"""Reading `rods.seals` with a plain consumer: a worker's state, before it takes part.

Faust's own recovery reads some thousand records a second; a plain consumer reads hundreds of thousands. Partitions are
folded from their newest snapshot seals, found by reading backwards; what lies before is skimmed, and
only by the worker that selects.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eventlog.reader import LogTail, read_all
from schemas.codec import decode, kind_of_frame
from schemas.errors import UndecodableError
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.errors import OffsetGapError
from streams.measure.seal import identity
from streams.measure.state import MeasureState
from streams.seals.assembly import Identity
from streams.seals.beginning import Beginning
from streams.seals.recovery import Recovery, recover
from streams.seals.skim import Skim, seal_head
from streams.select.fold import PlacedSeed, SelectState, evolve, skip
from streams.service.settings import StreamsSettings

WINDOW = 500


@dataclass(slots=True)
class SealLog:
    """What the seals say: each wanted partition's state, the selections, and the seeds of each by its offset.

    anchors: by partition, the offset its reading begins at.
    selects: whether selections are folded at all.
    """

    measure: dict[int, Recovery]
    select: SelectState = field(default_factory=SelectState)
    seeds: dict[int, tuple[PlacedSeed, ...]] = field(default_factory=dict)
    anchors: Mapping[int, int] = field(default_factory=dict)
    selects: bool = True

    def take(self, offset: int, value: bytes) -> None:
        """Folds the message at `offset`. Raises UnknownFingerprintError and StreamError."""
        try:
            event = decode(value)
        except UndecodableError:
            self.select = skip(self.select, offset)
            return
        if isinstance(event, PartitionSealed) and self._wants(offset, event.partition):
            self.measure[event.partition] = recover(self.measure[event.partition], event)
        self._select(offset, event)

    def resume(self, skim: Skim) -> None:
        """Takes up select where a skim has left it."""
        self.select = skim.before
        for offset, frame in skim.frames():
            self.select = replace(self.select, next_offset=offset)
            with suppress(UndecodableError):
                self._select(offset, decode(frame))
        self.select = replace(self.select, next_offset=skim.next_offset)

    def _wants(self, offset: int, partition: int) -> bool:
        return partition in self.measure and offset >= self.anchors.get(partition, 0)

    def _select(self, offset: int, event: Any) -> None:
        if not self.selects:
            self.select = replace(self.select, next_offset=offset + 1)
            return
        selected = evolve(self.select, offset, event)
        self.select = selected.state
        if selected.seeds:
            self.seeds[offset] = selected.seeds

    @property
    def states(self) -> Mapping[int, MeasureState]:
        return {partition: recovery.state for partition, recovery in self.measure.items()}


async def read_seals(settings: StreamsSettings, partitions: Collection[int], since: int | None = 0) -> SealLog:
    """What `rods.seals` says now. since: the group's next offset there, from which on seeds are asked for; None: the
    worker does not select, and reads nothing for it.

    A topic that was emptied says nothing: every partition is folded anew from its first event, which writes the same
    seals again, and from then on it begins there. One that lost its beginning alone is refused: raises OffsetGapError.
    """
    topic = Topic.SEALS.named(settings.prefix)
    begin, end = await _bounds(settings, topic)
    log = SealLog({partition: Recovery(MeasureState(partition)) for partition in partitions}, selects=since is not None)
    if begin == end:
        log.select = SelectState(next_offset=end)
        return log
    if begin and not await _is_whole(settings, topic, begin, end):
        raise OffsetGapError(Topic.SEALS, 0, 0, begin)
    log.anchors = await find_anchors(settings, topic, partitions, end, begin)
    start = max(begin, min([end if since is None else since, end, *log.anchors.values()]))
    await _skim(settings, topic, range(begin, start), log)
    async for record in read_all(settings.broker, topic, 0, start, end):
        log.take(record.offset, record.value or b"")
    return log


async def _bounds(settings: StreamsSettings, topic: str) -> tuple[int, int]:
    """The first offset that the topic has, and the end."""
    async with LogTail(settings.broker, {(topic, 0): None}) as tail:
        return tail.positions[topic, 0], (await tail.ends())[topic, 0]


async def _is_whole(settings: StreamsSettings, topic: str, begin: int, end: int) -> bool:
    """Whether what lies from `begin` on was sealed anew."""
    beginning = Beginning(settings.partitions)
    async for record in read_all(settings.broker, topic, 0, begin, end):
        if not beginning.take(record.value or b""):
            return False
        if beginning.known:
            break
    return True


async def _skim(settings: StreamsSettings, topic: str, passed: range, log: SealLog) -> None:
    """Brings select over the offsets `passed`."""
    skim = Skim(next_offset=passed.stop)
    if log.selects and passed:
        async for record in read_all(settings.broker, topic, 0, passed.start, passed.stop):
            skim.take(record.offset, record.value or b"")
    log.resume(skim)


async def find_anchors(
    settings: StreamsSettings, topic: str, partitions: Collection[int], end: int, first: int = 0
) -> dict[int, int]:
    """By partition, the offset of its newest snapshot seal. Reads backwards.

    first: where the topic begins, and where a partition is read from whose state no seal carries.
    """
    found: dict[int, int] = {}
    chunks: dict[Identity, dict[int, int]] = {}
    while end > first and len(found) < len(partitions):
        begin = max(first, end - WINDOW)
        async for record in read_all(settings.broker, topic, 0, begin, end):
            _note(chunks, record.offset, record.value or b"", partitions)
        for (_, partition, number, _), offsets in sorted(chunks.items()):
            if len(offsets) == number:
                found[partition] = min(offsets.values())
        end = begin
    return {partition: found.get(partition, first) for partition in partitions}


def _note(chunks: dict[Identity, dict[int, int]], offset: int, value: bytes, partitions: Collection[int]) -> None:
    """Remembers the offset of a chunk of a snapshot seal; the first place of each counts."""
    if kind_of_frame(value) != PartitionSealed.KIND:
        return
    try:
        if seal_head(value).partition not in partitions:
            return
        seal = decode(value)
    except UndecodableError:
        return
    if seal.last_of_epoch and 0 <= seal.chunk < seal.chunks:
        places = chunks.setdefault(identity(seal), {})
        places[seal.chunk] = min(offset, places.get(seal.chunk, offset))
