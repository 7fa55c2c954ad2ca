"""Reading `rods.seals` from its beginning to its end with a plain consumer: a worker's state, before it takes part.

Faust's own recovery reads some thousand records a second; a plain consumer reads hundreds of thousands.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from schemas.codec import decode
from schemas.connection import Broker, client_options
from schemas.errors import UndecodableError
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.measure.state import MeasureState
from streams.recovery import Recovery, recover
from streams.select.fold import PlacedSeed, SelectState, evolve, skip
from streams.settings import MAX_MESSAGE_BYTES, StreamsSettings


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
    """Everything in `rods.seals` now, folded."""
    log = SealLog({partition: Recovery(MeasureState(partition)) for partition in partitions})
    async for record in _records(settings.broker, Topic.SEALS.named(settings.prefix)):
        log.take(record.offset, record.value)
    return log


async def _records(broker: Broker, topic: str) -> AsyncIterator[Any]:
    """The records of partition 0 up to the end that it has now."""
    consumer = AIOKafkaConsumer(
        **client_options(broker),
        enable_auto_commit=False,
        max_partition_fetch_bytes=MAX_MESSAGE_BYTES,
        fetch_max_wait_ms=100,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    await consumer.start()
    try:
        await consumer.seek_to_beginning(partition)
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            for record in (await consumer.getmany(partition, timeout_ms=200, max_records=200)).get(partition, []):
                if record.offset < end:
                    yield record
    finally:
        await consumer.stop()
