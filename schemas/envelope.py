"""The envelope on every event, and how an event gets its identity.

Pure code builds events with the `UNSTAMPED` envelope; the shell stamps them with ids and times. The id is the UUIDv5 of
run, kind and natural key, so that emitting a derived event again gives the same bytes.
"""

import hashlib
import uuid
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar, Protocol, TypeVar

RECURRING = "recurring"
"""Metadata of an array field: its items are hashable and mostly those of the events before, as a task's state is."""
MAX_REMEMBERED = 262_144
"""Items of recurring fields that a process remembers in encoded form, some 200 bytes each."""

NAMESPACE = uuid.UUID("6f1d1c7e-5e4b-5d0a-9a53-0d6b5c1f2a90")
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


class Producer(StrEnum):
    """The role that wrote an event; never a process."""

    LEARNER = "learner"
    ROLLOUT = "rollout"
    MEASURE = "measure"
    SELECT = "select"
    SYNTHESIS = "synthesis"
    OPERATOR = "operator"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Envelope:
    """Identity and provenance.

    event_id: UUIDv5 of run, kind and natural key.
    occurred_at: microseconds since the epoch, from the caller's clock; a derived event copies its cause's.
    causation_id: the event this one follows from.
    correlation_id: what it belongs to (a group, a seed, a step).
    """

    event_id: str
    run_id: str
    occurred_at: int
    producer: str
    causation_id: str | None = None
    correlation_id: str | None = None


UNSTAMPED = Envelope("", "", 0, "")


class Event(Protocol):
    """What every event type offers. `natural_key` are the parts that name the fact within its run."""

    KIND: ClassVar[str]

    @property
    def envelope(self) -> Envelope: ...

    @property
    def natural_key(self) -> tuple[str, ...]: ...


E = TypeVar("E", bound=Event)


@lru_cache(maxsize=256)
def _begun(run_id: str, kind: str) -> "hashlib._Hash":
    name = f"{len(run_id)}:{run_id}{len(kind)}:{kind}"
    return hashlib.sha1(NAMESPACE.bytes + name.encode(), usedforsecurity=False)


def event_id(run_id: str, kind: str, natural_key: tuple[str, ...]) -> str:
    """The UUIDv5 (RFC 9562) of run, kind and natural key; parts are joined unambiguously.

    Laid out here, since ``uuid.uuid5`` takes three times as long and every derived event needs one.
    """
    hashed = _begun(run_id, kind).copy()
    hashed.update("".join([f"{len(part)}:{part}" for part in natural_key]).encode())
    digest = hashed.hexdigest()
    variant = _VARIANT[digest[16]]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def stamp(
    event: E,
    *,
    run_id: str,
    occurred_at: int,
    producer: str,
    cause: Envelope | None = None,
    correlation_id: str | None = None,
) -> E:
    """The event with its envelope. Without a correlation id it takes the cause's."""
    key = (event.KIND, event.natural_key)
    envelope = stamped_envelope(
        *key, run_id=run_id, occurred_at=occurred_at, producer=producer, cause=cause, correlation_id=correlation_id
    )
    return replace(event, envelope=envelope)  # type: ignore[type-var]


def stamped_envelope(
    kind: str,
    natural_key: tuple[str, ...],
    *,
    run_id: str,
    occurred_at: int,
    producer: str,
    cause: Envelope | None = None,
    correlation_id: str | None = None,
) -> Envelope:
    """The envelope that `stamp` gives an event of this kind and key."""
    return Envelope(
        event_id=event_id(run_id, kind, natural_key),
        run_id=run_id,
        occurred_at=occurred_at,
        producer=producer,
        causation_id=cause.event_id if cause else None,
        correlation_id=correlation_id if correlation_id is not None else (cause.correlation_id if cause else None),
    )


def derived_envelope(kind: str, natural_key: tuple[str, ...], cause: Envelope, producer: str) -> Envelope:
    """The envelope that `derive` gives an event of this kind and key."""
    return stamped_envelope(
        kind, natural_key, run_id=cause.run_id, occurred_at=cause.occurred_at, producer=producer, cause=cause
    )


def derive(event: E, cause: Envelope, producer: str, correlation_id: str | None = None) -> E:
    """An event that follows from `cause`: same run, same time, so that deriving it again gives the same bytes."""
    return stamp(
        event,
        run_id=cause.run_id,
        occurred_at=cause.occurred_at,
        producer=producer,
        cause=cause,
        correlation_id=correlation_id,
    )
