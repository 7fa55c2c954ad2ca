"""What readers refused, as an operator sees it: listed from `rods.dead-letters`, and written back where it came from.

A letter goes back only with all its bytes, and only to a topic keyed by task: the others have one writer each, whose
fences a second would break. A result goes back only once its step is closed, so that it comes behind the step's barrier
and is late: counted, and without effect. Bytes that are still unreadable are refused again, as a new letter.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from aiokafka.errors import KafkaError

from eventlog.client import log_producer
from eventlog.reader import read_all
from rods.brokers.connection import connection_of, tried
from rods.brokers.topic_admin import TopicAdmin
from rods.errors import UserError
from rods.settings import Settings
from schemas.codec import decode
from schemas.epochs import StepClosed
from schemas.errors import SchemaError
from schemas.pool import EventRefused
from schemas.rollouts import BarrierReached, RolloutFinished
from schemas.topics import Topic


class Fate(StrEnum):
    """What can be done with a letter."""

    REPLAYABLE = "replayable"
    CUT = "cut"
    OPEN_STEP = "open_step"
    ONE_WRITER = "one_writer"

    @property
    def why_not(self) -> str:
        return {
            Fate.REPLAYABLE: "",
            Fate.CUT: "only its first 64 KiB were kept",
            Fate.OPEN_STEP: "its step is not closed yet, so that it would count; wait until it is",
            Fate.ONE_WRITER: "its topic has one writer, and that is no operator",
        }[self]


@dataclass(frozen=True, slots=True)
class Letter:
    """A refused record. number: the letter's own offset; the rest names the record that was refused."""

    number: int
    event: EventRefused
    fate: Fate

    @property
    def size(self) -> int:
        """Bytes kept."""
        return len(self.event.value)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A letter and the offset that its bytes got this time; None: it was left where it is."""

    letter: Letter
    offset: int | None


async def letters(settings: Settings) -> list[Letter]:
    """Every letter of the prefix, oldest first. Raises UserError."""
    connection, name = connection_of(settings), Topic.DEAD_LETTERS.named(settings.prefix)
    await tried(connection)
    try:
        async with TopicAdmin(connection) as admin:
            if name not in await admin.names():
                raise UserError(f"there is no topic {name} at {connection}; check --prefix")
        return [letter async for letter in _letters(settings)]
    except KafkaError as error:
        raise UserError(f"the dead letters at {settings.broker} cannot be read: {error}") from error


async def replay(settings: Settings, numbers: Iterable[int] | None) -> list[Replayed]:
    """Writes letters back, those numbered or all. Raises UserError, before anything is written where a number is not
    there or its letter cannot go back."""
    found = {letter.number: letter for letter in await letters(settings)}
    chosen = list(found.values()) if numbers is None else [_asked_for(found, number) for number in numbers]
    replayed = []
    async with log_producer(connection_of(settings)) as producer:
        for letter in chosen:
            offset = None
            if letter.fate is Fate.REPLAYABLE:
                event = letter.event
                written = await producer.send_and_wait(
                    event.topic, event.value, key=_key(event.value), partition=event.partition
                )
                offset = int(written.offset)
            replayed.append(Replayed(letter, offset))
    return replayed


def fate_of(event: EventRefused, prefix: str, closed: int) -> Fate:
    """What can be done with a refused record's bytes. closed: the last step that the run has closed."""
    if event.topic not in {topic.named(prefix) for topic in Topic if topic.by_task}:
        return Fate.ONE_WRITER
    whole = hashlib.sha256(event.value).hexdigest() == event.sha256
    if not whole:
        return Fate.CUT
    return Fate.OPEN_STEP if _step(event.value) > closed else Fate.REPLAYABLE


def _step(value: bytes) -> int:
    """The step that a result or a barrier belongs to; 0 for what belongs to none."""
    try:
        event = decode(value)
    except SchemaError:
        return 0
    return event.step if isinstance(event, RolloutFinished | BarrierReached) else 0


async def _last_closed(settings: Settings) -> int:
    """The last step whose StepClosed is in the log: by then every partition has its barrier. 0: no step is closed."""
    closed = 0
    async for record in read_all(connection_of(settings), Topic.EPOCHS.named(settings.prefix), 0, start=None):
        with suppress(SchemaError):
            event = decode(record.value or b"")
            closed = max(closed, event.step) if isinstance(event, StepClosed) else closed
    return closed


async def _letters(settings: Settings) -> AsyncIterator[Letter]:
    name = Topic.DEAD_LETTERS.named(settings.prefix)
    closed = await _last_closed(settings)
    async for record in read_all(connection_of(settings), name, 0, start=None):
        try:
            event = decode(record.value or b"")
        except SchemaError:
            continue
        if isinstance(event, EventRefused):
            yield Letter(record.offset, event, fate_of(event, settings.prefix, closed))


def _asked_for(found: dict[int, Letter], number: int) -> Letter:
    letter = found.get(number)
    if letter is None:
        raise UserError(f"there is no dead letter {number}; `rods dead-letters list` names them")
    if letter.fate is not Fate.REPLAYABLE:
        raise UserError(f"the dead letter {number} cannot be written back: {letter.fate.why_not}")
    return letter


def _key(value: bytes) -> bytes | None:
    """The task, where the bytes can be read; they were refused, so perhaps not."""
    try:
        task = getattr(decode(value), "task", None)
    except SchemaError:
        return None
    return str(task).encode() if task else None
