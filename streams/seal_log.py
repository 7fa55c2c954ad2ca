"""Reading `rods.seals` from its beginning to its end with a plain consumer: a worker's state, before it takes part.

Faust's own recovery reads some thousand records a second; a plain consumer reads hundreds of thousands.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from schemas.codec import decode
from schemas.errors import UndecodableError
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.log_reader import LogTail
from streams.measure.state import MeasureState
from streams.recovery import Recovery, recover
from streams.select.fold import PlacedSeed, SelectState, evolve, skip
from streams.settings import StreamsSettings


@dataclass(slots=True)
class SealLog:
    """What the seals say: each wanted partition's state, the selections, and the seeds of each by its offset."""

    measure: dict[int, Recovery]
    select: SelectState = field(default_factory=SelectState)
    seeds: dict[int, tuple[PlacedSeed, ...]] = field(default_factory=dict)

    def take(self, offset: int, value: bytes) -> None:
        """Folds the message at `offset`. Raises UnknownFingerprintError and StreamError."""
        try:
            event = decode(value)
        except UndecodableError:
            self.select = skip(self.select, offset)
            return
        if isinstance(event, PartitionSealed) and event.partition in self.measure:
            self.measure[event.partition] = recover(self.measure[event.partition], event)
        selected = evolve(self.select, offset, event)
        self.select = selected.state
        if selected.seeds:
            self.seeds[offset] = selected.seeds

    @property
    def states(self) -> Mapping[int, MeasureState]:
        return {partition: recovery.state for partition, recovery in self.measure.items()}


async def read_seals(settings: StreamsSettings, partitions: Collection[int]) -> SealLog:
    """Everything in `rods.seals` now, folded.

    A topic that was emptied says nothing: every partition is folded anew from its first event, which writes the same
    seals again. One that lost its beginning alone is refused: raises OffsetGapError.
    """
    log = SealLog({partition: Recovery(MeasureState(partition)) for partition in partitions})
    place = (Topic.SEALS.named(settings.prefix), 0)
    async with LogTail(settings.broker, {place: None}) as tail:
        begin, end = tail.positions[place], (await tail.ends())[place]
        if begin == end:
            log.select = SelectState(next_offset=end)
        async for batch in tail.until({place: end}):
            for record in batch:
                if record.offset < end:
                    log.take(record.offset, record.value or b"")
    return log
