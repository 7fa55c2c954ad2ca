"""What a reader refuses goes to `rods.dead-letters`, and the reader goes on.

A letter fits where the record that it tells of did not: what it takes over of a hostile one is cut, or the broker would
refuse the letter, and the worker that wrote it would end and come to the same record again.
"""

import hashlib
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaProducer

from eventlog.writer import send
from schemas.codec import encode
from schemas.envelope import Envelope, Producer, derive, stamp
from schemas.pool import EventRefused
from schemas.topics import Topic

MAX_VALUE_BYTES = 64 * 1024
MAX_REASON_LENGTH = 500
MAX_TEXT_LENGTH = 1024


def refusal(topic: str, partition: int, offset: int, value: bytes, reason: str) -> EventRefused:
    """The unstamped dead letter of a message. The digest is of the whole value, which is cut at 64 KiB."""
    return EventRefused(
        topic=topic,
        partition=partition,
        offset=offset,
        sha256=hashlib.sha256(value).hexdigest(),
        value=value[:MAX_VALUE_BYTES],
        reason=reason[:MAX_REASON_LENGTH],
    )


def refused_event(letter: EventRefused, cause: Envelope) -> EventRefused:
    """The dead letter of an event that could be read. Of its envelope's texts no more than so many characters count."""
    run, cause_id, story = cause.run_id, cause.event_id, cause.correlation_id
    bounded = replace(
        cause,
        run_id=run[:MAX_TEXT_LENGTH],
        event_id=cause_id[:MAX_TEXT_LENGTH],
        correlation_id=story and story[:MAX_TEXT_LENGTH],
    )
    return derive(letter, bounded, Producer.READER)


def refused_bytes(letter: EventRefused, timestamp: float, run_id: str = "") -> EventRefused:
    """The dead letter of bytes that are no event. timestamp: the message's in the log, seconds since the epoch; so that
    refusing it again gives the same bytes. run_id: empty where its run is not known."""
    return stamp(letter, run_id=run_id, occurred_at=round(timestamp * 1000) * 1000, producer=Producer.READER)


async def refuse(producer: AIOKafkaProducer, prefix: str, record: Any, reason: str, run_id: str) -> None:
    """Keeps a record that a worker cannot take in the dead letters."""
    letter = refusal(record.topic, record.partition, record.offset, record.value or b"", reason)
    event = encode(refused_bytes(letter, max(record.timestamp, 0) / 1000, run_id))
    await send(producer, Topic.DEAD_LETTERS.named(prefix), 0, record.topic, event)
