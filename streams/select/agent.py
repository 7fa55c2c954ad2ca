"""The select agent: decode, fold, execute, acknowledge.

Per message of `rods.seals`: a proposed SelectionClosed goes to the same topic; the seeds go out when it is read back,
and its offset is acknowledged after them. So a worker that dies in between writes them again.
"""

import logging
from collections.abc import Iterable
from typing import Any

from eventlog.dead_letters import refusal, refused_bytes
from schemas.codec import decode
from schemas.errors import UndecodableError, UnknownFingerprintError
from schemas.topics import Topic
from streams.select.fold import PlacedSeed, evolve, skip
from streams.service.notices import Notice, Notify, silent
from streams.service.outbox import Outbox
from streams.service.session import Gate, SelectPosition

_log = logging.getLogger(__name__)


class SelectAgent:
    """One stream over the one partition of `rods.seals`."""

    def __init__(self, gate: Gate, outbox: Outbox, run_key: str, notify: Notify = silent) -> None:
        self._gate = gate
        self._outbox = outbox
        self._run_key = run_key
        self._notify = notify

    async def resume(self, position: SelectPosition) -> None:
        """Proposes what the log shows as selected by nobody yet, and writes the latest committed seeds again."""
        if position.state.proposed is not None:
            await self._outbox.post(Topic.SEALS, 0, self._run_key, position.state.proposed)
        await self._plant(position.latest)
        await self._outbox.settled()

    async def take(self, stream: Any, event: Any) -> None:
        """Takes a delivered event. Raises OffsetGapError where the framework skipped one."""
        message = event.message
        session = await self._gate.session(message.generation_id)
        position = session.select if session else None
        if session is None or position is None or position.stopped:
            return
        try:
            await self._fold(position, message)
        except UnknownFingerprintError as error:
            position.stopped = True
            self._notify(Notice.UNKNOWN_SCHEMA)
            _log.error("%s stops at offset %s: %s", message.topic, message.offset, error)
            return
        await self._outbox.settled()
        if self._gate.live(session):
            await stream.ack(event)

    async def _fold(self, position: SelectPosition, message: Any) -> None:
        value = message.value or b""
        try:
            event = decode(value)
        except UndecodableError as error:
            position.state = skip(position.state, message.offset)
            letter = refusal(message.topic, message.partition, message.offset, value, str(error))
            await self._outbox.post(Topic.DEAD_LETTERS, 0, message.topic, refused_bytes(letter, message.timestamp))
            return
        if message.offset < position.recovered:
            await self._plant(position.seeds.pop(message.offset, ()))
            return
        selected = evolve(position.state, message.offset, event)
        if selected.state.alarms > position.state.alarms:
            self._notify(Notice.CONTRADICTED)
            _log.error(
                "offset %s of %s contradicts what stands before it; the first counts", message.offset, message.topic
            )
        position.state = selected.state
        if selected.proposed is not None:
            await self._outbox.post(Topic.SEALS, 0, self._run_key, selected.proposed)
        await self._plant(selected.seeds)

    async def _plant(self, seeds: Iterable[PlacedSeed]) -> None:
        for seed in seeds:
            await self._outbox.post(Topic.SEEDS, seed.partition, seed.event.task, seed.event)
