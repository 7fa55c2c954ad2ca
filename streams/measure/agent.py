"""The measure agent: decode, fold, execute, acknowledge.

Per message of `rods.rollouts`: a TaskMeasured leaves at once. At a barrier: 1 everything posted is acknowledged by the
broker, 2 the seal is, 3 the offsets it covers are. A worker that dies in between folds the same events again and
writes the same bytes.
"""

import logging
from typing import Any

from schemas.codec import decode, encode
from schemas.errors import UndecodableError, UnknownFingerprintError
from schemas.topics import Topic
from streams.dead_letters import refusal, refused_bytes, refused_event
from streams.measure.fold import evolve, skip
from streams.measure.state import Evolved, Refusal
from streams.outbox import Outbox
from streams.session import Gate, MeasurePosition, Session

_log = logging.getLogger(__name__)


class MeasureAgent:
    """One stream over the partitions of `rods.rollouts` that the worker holds."""

    def __init__(self, gate: Gate, outbox: Outbox, run_key: str) -> None:
        self._gate = gate
        self._outbox = outbox
        self._run_key = run_key

    async def take(self, stream: Any, event: Any) -> None:
        """Takes a delivered event. Raises OffsetGapError where the framework skipped one."""
        message = event.message
        session = await self._gate.session(message.generation_id)
        position = session.measure.get(message.partition) if session else None
        if session is None or position is None or position.stopped:
            return
        if message.offset < position.state.next_offset:
            if message.offset < position.sealed:
                await stream.ack(event)
            return
        try:
            decoded = decode(message.value)
        except UndecodableError as error:
            position.state = skip(position.state, message.offset)
            position.pending.append(event)
            await self._refuse_bytes(message, str(error))
            return
        except UnknownFingerprintError as error:
            position.stopped = True
            _log.error("%s/%s stops at offset %s: %s", message.topic, message.partition, message.offset, error)
            return
        evolved = evolve(position.state, message.offset, decoded)
        position.state = evolved.state
        position.pending.append(event)
        await self._execute(stream, session, position, message, evolved)

    async def _execute(
        self, stream: Any, session: Session, position: MeasurePosition, message: Any, evolved: Evolved
    ) -> None:
        if evolved.measured is not None:
            await self._outbox.post(Topic.MEASUREMENTS, message.partition, evolved.measured.task, evolved.measured)
        for refused in evolved.refusals:
            await self._refuse(message, refused)
        if evolved.seals:
            await self._seal(stream, session, position, evolved)

    async def _seal(self, stream: Any, session: Session, position: MeasurePosition, evolved: Evolved) -> None:
        await self._outbox.settled()
        if not self._gate.live(session):
            return
        for seal in evolved.seals:
            await self._outbox.post(Topic.SEALS, 0, self._run_key, seal)
        await self._outbox.settled()
        if not self._gate.live(session):
            return
        position.sealed = evolved.state.next_offset
        covered, position.pending = position.pending, []
        for event in covered:
            await stream.ack(event)

    async def _refuse(self, message: Any, refused: Refusal) -> None:
        value = message.value if refused.offset == message.offset else encode(refused.event)
        letter = refusal(message.topic, message.partition, refused.offset, value, refused.reason)
        await self._outbox.post(Topic.DEAD_LETTERS, 0, message.topic, refused_event(letter, refused.event.envelope))

    async def _refuse_bytes(self, message: Any, reason: str) -> None:
        letter = refusal(message.topic, message.partition, message.offset, message.value or b"", reason)
        await self._outbox.post(Topic.DEAD_LETTERS, 0, message.topic, refused_bytes(letter, message.timestamp))
