"""What a stream refuses goes to `rods.dead-letters`, and the stream goes on. Pure."""

import hashlib

from schemas.envelope import Envelope, Producer, derive, stamp
from schemas.pool import EventRefused

MAX_VALUE_BYTES = 64 * 1024
MAX_REASON_LENGTH = 500


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
    """The dead letter of an event that could be read."""
    return derive(letter, cause, Producer.READER)


def refused_bytes(letter: EventRefused, timestamp: float) -> EventRefused:
    """The dead letter of bytes that are no event. timestamp: the message's in the log, seconds since the epoch; so that
    refusing it again gives the same bytes. Its run is not known."""
    return stamp(letter, run_id="", occurred_at=round(timestamp * 1000) * 1000, producer=Producer.READER)
