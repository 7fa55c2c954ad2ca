"""The measure agent: decode, fold, execute, acknowledge.

Per message of `rods.rollouts`: a TaskMeasured leaves at once. At a barrier: 1 everything posted is acknowledged by the
broker, 2 the seal is, 3 the offsets it covers are. A worker that dies in between folds the same events again and
writes the same bytes. Where events are missing before a delivered one, they are read from the log and folded first.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple

from schemas.codec import decode, encode
from schemas.errors import UndecodableError, UnknownFingerprintError
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.dead_letters import refusal, refused_bytes, refused_event
from streams.errors import OffsetGapError
from streams.known_seals import KnownSeals
from streams.measure.fold import evolve, skip
from streams.measure.state import Evolved, Refusal
from streams.notices import Notice, Notify, silent
from streams.outbox import Outbox
from streams.session import Gate, MeasurePosition

_log = logging.getLogger(__name__)


class Arrived(NamedTuple):
    """A record of `rods.rollouts`. timestamp: the log's, seconds since the epoch."""

    topic: str
    partition: int
    offset: int
    value: bytes
    timestamp: float


Refetch = Callable[[int, range], AsyncIterator[Arrived]]
"""Partition and offsets to records. Raises OffsetGapError where the broker no longer has them."""


Observe = Callable[[Sequence[PartitionSealed], int], None]
"""Told the chunks of each seal that the broker has, and how many events it covers."""


class MeasureAgent:
    """One stream over the partitions of `rods.rollouts` that the worker holds."""

    def __init__(
        self,
        gate: Gate,
        outbox: Outbox,
        run_key: str,
        refetch: Refetch | None = None,
        sealed: Observe = lambda *_: None,
        known: KnownSeals | None = None,
        notify: Notify = silent,
    ) -> None:
        self._gate = gate
        self._outbox = outbox
        self._run_key = run_key
        self._refetch = refetch
        self._sealed = sealed
        self._known = known
        self._notify = notify

    async def take(self, stream: Any, event: Any) -> None:
        """Takes a delivered event. Raises OffsetGapError where one before it is nowhere to be had."""
        message = event.message
        session = await self._gate.session(message.generation_id)
        position = session.measure.get(message.partition) if session else None
        if session is None or position is None or position.stopped:
            return
        if message.offset < position.state.next_offset:
            if message.offset < position.sealed:
                await stream.ack(event)
            else:
                position.pending.append(event)
            return

        def live() -> bool:
            return self._gate.live(session)

        if message.offset > position.state.next_offset:
            await self.catch_up(position, message.partition, message.offset, live)
        if position.stopped or not live():
            return
        position.pending.append(event)
        arrived = Arrived(message.topic, message.partition, message.offset, message.value or b"", message.timestamp)
        if await self._fold(position, arrived, live):
            await self._acknowledge(stream, position)

    async def catch_up(self, position: MeasurePosition, partition: int, end: int, live: Callable[[], bool]) -> None:
        """Folds what lies before `end` from the log, while the session is `live`. Nothing of it can be acknowledged."""
        offsets = range(position.state.next_offset, end)
        if self._refetch is None:
            raise OffsetGapError(Topic.ROLLOUTS, partition, offsets.start, offsets.stop)
        _log.warning("%d events of partition %d are read again from offset %d", len(offsets), partition, offsets.start)
        async for arrived in self._refetch(partition, offsets):
            if position.stopped or not live():
                return
            await self._fold(position, arrived, live)

    async def _fold(self, position: MeasurePosition, arrived: Arrived, live: Callable[[], bool]) -> bool:
        """Whether the record led to a seal that the broker has."""
        try:
            decoded = decode(arrived.value)
        except UndecodableError as error:
            position.state = skip(position.state, arrived.offset)
            await self._refuse_bytes(arrived, str(error))
            return False
        except UnknownFingerprintError as error:
            position.stopped = True
            self._notify(Notice.UNKNOWN_SCHEMA)
            _log.error("%s/%s stops at offset %s: %s", arrived.topic, arrived.partition, arrived.offset, error)
            return False
        evolved = evolve(position.state, arrived.offset, decoded)
        if evolved.state.counts.superseded > position.state.counts.superseded:
            self._notify(Notice.SUPERSEDED)
        position.state = evolved.state
        return await self._execute(position, arrived, evolved, live)

    async def _execute(
        self, position: MeasurePosition, arrived: Arrived, evolved: Evolved, live: Callable[[], bool]
    ) -> bool:
        if evolved.measured is not None:
            await self._outbox.post(Topic.MEASUREMENTS, arrived.partition, evolved.measured.task, evolved.measured)
        for refused in evolved.refusals:
            await self._refuse(arrived, refused)
        return bool(evolved.seals) and await self._seal(position, evolved, live)

    async def _seal(self, position: MeasurePosition, evolved: Evolved, live: Callable[[], bool]) -> bool:
        await self._outbox.settled()
        if not live():
            return False
        for seal in evolved.seals:
            frame = await self._outbox.post(Topic.SEALS, 0, self._run_key, seal)
            if self._known is not None:
                self._known.remember(frame, seal)
        await self._outbox.settled()
        self._sealed(evolved.seals, evolved.state.next_offset - position.sealed)
        position.sealed = evolved.state.next_offset
        return live()

    async def _acknowledge(self, stream: Any, position: MeasurePosition) -> None:
        covered, position.pending = position.pending, []
        for event in covered:
            await stream.ack(event)

    async def _refuse(self, message: Arrived, refused: Refusal) -> None:
        value = message.value if refused.offset == message.offset else encode(refused.event)
        letter = refusal(message.topic, message.partition, refused.offset, value, refused.reason)
        await self._outbox.post(Topic.DEAD_LETTERS, 0, message.topic, refused_event(letter, refused.event.envelope))

    async def _refuse_bytes(self, message: Arrived, reason: str) -> None:
        letter = refusal(message.topic, message.partition, message.offset, message.value or b"", reason)
        await self._outbox.post(Topic.DEAD_LETTERS, 0, message.topic, refused_bytes(letter, message.timestamp))
