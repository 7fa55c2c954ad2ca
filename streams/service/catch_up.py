"""What lies between the seals and the first event that a consumer group will be given.

The group's offsets are a hint, not a fact: a framework may have committed past an event in flight, or the topic may be
older than the commit. So a worker that gains partitions compares, and folds what is missing from the log itself.
"""

from collections.abc import AsyncIterator, Collection
from typing import NamedTuple

from aiokafka import TopicPartition

from eventlog.client import log_admin
from eventlog.errors import LogError
from eventlog.reader import end_offsets, read_all
from eventlog.standstill import Place
from schemas.topics import Topic
from streams.errors import LogBehindError, OffsetGapError
from streams.measure.agent import Arrived
from streams.service.settings import StreamsSettings


class Standing(NamedTuple):
    """Where the group and the log stand at a place. committed: the group's next offset, 0 before its first commit."""

    committed: int
    end: int


async def standings(settings: StreamsSettings, places: Collection[Place]) -> dict[Place, Standing]:
    """Both, by place."""
    if not places:
        return {}
    committed, ends = await _committed(settings, places), await end_offsets(settings.broker, places)
    return {place: Standing(committed[place], ends[place]) for place in places}


def missing(topic: str, partition: int, next_offset: int, standing: Standing) -> range:
    """The offsets that a fold must take from the log, since its group was told to begin behind them.

    Raises LogBehindError where the fold is ahead of the log: what is written there next would be taken as known.
    """
    if next_offset > standing.end:
        raise LogBehindError(topic, partition, next_offset, standing.end)
    return range(next_offset, min(standing.committed, standing.end))


async def records(settings: StreamsSettings, partition: int, offsets: range) -> AsyncIterator[Arrived]:
    """The records of `rods.rollouts` at these offsets. Raises OffsetGapError where the broker no longer has them."""
    topic = Topic.ROLLOUTS.named(settings.prefix)
    try:
        async for record in read_all(settings.broker, topic, partition, offsets.start, offsets.stop):
            seconds = record.timestamp / 1000
            yield Arrived(record.topic, record.partition, record.offset, record.value or b"", seconds)
    except LogError as error:
        raise OffsetGapError(topic, partition, offsets.start, offsets.stop) from error


async def _committed(settings: StreamsSettings, places: Collection[Place]) -> dict[Place, int]:
    asked = [TopicPartition(*place) for place in places]
    async with log_admin(settings.broker) as admin:
        found = await admin.list_consumer_group_offsets(settings.app_id, partitions=asked)
    return {(tp.topic, tp.partition): max(0, found[tp].offset) if tp in found else 0 for tp in asked}
