"""The measure agent: decode, fold, execute.

Per message of `rods.rollouts`: a TaskMeasured leaves at once. At a barrier the seal is due: `Sealing` writes it and
acknowledges the offsets that it covers, while the fold goes on. Where events are missing before a delivered one, they
are read from the log and folded first.
"""

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from eventlog.dead_letters import refusal, refused_bytes, refused_event
from schemas.codec import decode, encode
from schemas.errors import UndecodableError, UnknownFingerprintError
from schemas.topics import Topic
from streams.errors import OffsetGapError
from streams.measure.fold import evolve, skip
from streams.measure.sealing import Due, Sealing
from streams.measure.state import Refusal
from streams.service.notices import Notice, Notify, silent
from streams.service.outbox import Outbox
from streams.service.session import Gate, MeasurePosition

_log = logging.getLogger(__name__)


class Arrived(NamedTuple):
    """A record of `rods.rollouts`, as a message of the framework has it. timestamp: the log's, seconds since the
    epoch."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    timestamp: float


Refetch = Callable[[int, range], AsyncIterator[Arrived]]
"""Partition and offsets to records. Raises OffsetGapError where the broker no longer has them."""


class MeasureAgent:
    """One stream over the partitions of `rods.rollouts` that the worker holds."""

    def __init__(
        self,
        gate: Gate,
        outbox: Outbox,
        sealing: Sealing,
        refetch: Refetch | None = None,
        notify: Notify = silent,
    ) -> None:
        self._gate = gate
        self._outbox = outbox
        self._sealing = sealing
        self._refetch = refetch
        self._notify = notify

    async def take(self, event: Any) -> None:
        """Takes a delivered event. Raises OffsetGapError where one before it is nowhere to be had."""
        message = event.message
        if self._sealing.full:
            await self._sealing.room()
        session = await self._gate.session(message.generation_id)
        position = session.measure.get(message.partition) if session else None
        if session is None or position is None or position.stopped:
            return
        if message.offset < position.sealed:
            self._sealing.acknowledge([event])
            return
        position.pending.append(event)
        if message.offset < position.state.next_offset:
            return

        def live() -> bool:
            return self._gate.live(session)

        if message.offset > position.state.next_offset:
            await self.catch_up(position, message.partition, message.offset, live)
        if position.stopped or not live():
            return
        await self._fold(position, message, live)

    async def catch_up(self, position: MeasurePosition, partition: int, end: int, live: Callable[[], bool]) -> None:
        """Folds what lies before `end` from the log, while the session is `live`. Nothing of it can be acknowledged."""
        offsets = range(position.state.next_offset, end)
        if self._refetch is None:
            raise OffsetGapError(Topic.ROLLOUTS, partition, offsets.start, offsets.stop)
        _log.warning("%d events of partition %d are read again from offset %d", len(offsets), partition, offsets.start)
        async for arrived in self._refetch(partition, offsets):
            if self._sealing.full:
                await self._sealing.room()
            if position.stopped or not live():
                return
            await self._fold(position, arrived, live)

    async def _fold(self, position: MeasurePosition, arrived: Arrived, live: Callable[[], bool]) -> None:
        try:
            decoded = decode(arrived.value or b"")
        except UndecodableError as error:
            position.state = skip(position.state, arrived.offset)
            await self._refuse_bytes(arrived, str(error))
            return
        except UnknownFingerprintError as error:
            position.stopped = True
            self._notify(Notice.UNKNOWN_SCHEMA)
            _log.error("%s/%s stops at offset %s: %s", arrived.topic, arrived.partition, arrived.offset, error)
            return
        evolved = evolve(position.state, arrived.offset, decoded)
        if evolved.state.counts.superseded > position.state.counts.superseded:
            self._notify(Notice.SUPERSEDED)
        position.state = evolved.state
        if (measured := evolved.measured) is not None:
            await self._outbox.post(Topic.MEASUREMENTS, arrived.partition, measured.task, measured)
        for refused in evolved.refusals:
            await self._refuse(arrived, refused)
        if evolved.seals:
            self._sealing.add(Due(position, evolved.seals, evolved.state.next_offset, live))

    async def _refuse(self, message: Arrived, refused: Refusal) -> None:
        value = message.value or b"" if refused.offset == message.offset else encode(refused.event)
        letter = refusal(message.topic, message.partition, refused.offset, value, refused.reason)
        await self._outbox.post(Topic.DEAD_LETTERS, 0, message.topic, refused_event(letter, refused.event.envelope))

    async def _refuse_bytes(self, message: Arrived, reason: str) -> None:
        letter = refusal(message.topic, message.partition, message.offset, message.value or b"", reason)
        await self._outbox.post(Topic.DEAD_LETTERS, 0, message.topic, refused_bytes(letter, message.timestamp))
