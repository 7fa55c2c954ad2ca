"""How events travel in the simulation, and the places where the real code is told so.

Most schedules carry events as they are: encoding is slow and tested elsewhere. Some carry bytes.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import learner.controller
import streams.measure.agent
import streams.measure.seal
import streams.seals.reader
import streams.select.agent
from eventlog.dead_letters import refusal
from schemas import codec
from schemas.errors import UndecodableError, UnknownFingerprintError
from schemas.pool import EventRefused

Patch = tuple[Any, str, Any]


@dataclass(frozen=True, slots=True)
class FromTheFuture:
    """An event in a schema that readers know only once they are upgraded."""

    event: Any


class Wire:
    """Encoding and decoding. upgraded: whether readers know what is from the future."""

    def __init__(self, real: bool) -> None:
        self.real = real
        self.upgraded = False

    def encode(self, event: Any) -> Any:
        return codec.encode(event) if self.real else event

    def decode(self, value: Any) -> Any:
        """Raises UndecodableError, UnknownFingerprintError."""
        if isinstance(value, FromTheFuture):
            if not self.upgraded:
                raise UnknownFingerprintError(b"12345678")
            return value.event
        if isinstance(value, bytes):
            return codec.decode(value)
        return value

    def read(self, value: Any) -> Any:
        """The event as a reader of the final log finds it; None where there is none."""
        try:
            return self.decode(value)
        except UndecodableError:
            return None

    def refusal(self, topic: str, partition: int, offset: int, value: Any, reason: str) -> EventRefused:
        if isinstance(value, FromTheFuture):
            value = value.event
        return refusal(topic, partition, offset, value if isinstance(value, bytes) else codec.encode(value), reason)

    def patches(self, small_chunks: bool, rules_bytes: int) -> list[Patch]:
        """What the real code must use instead of its own."""

        async def no_files(*_: Any) -> None:
            return None

        found: list[Patch] = [
            (streams.measure.agent, "decode", self.decode),
            (streams.measure.agent, "encode", codec.encode),
            (streams.measure.agent, "refusal", self.refusal),
            (streams.select.agent, "decode", self.decode),
            (streams.select.agent, "refusal", self.refusal),
            (streams.seals.reader, "decode", self.decode),
            (learner.controller, "write_current_pool", no_files),
        ]
        if small_chunks:
            room = streams.measure.seal._ENVELOPE_BYTES + rules_bytes + 700
            found.append((streams.measure.seal, "MAX_CHUNK_BYTES", room))
        return found


@contextmanager
def patched(patches: list[Patch]) -> Iterator[None]:
    """The modules with other names in them, and nothing logged; put back afterwards."""
    disabled = logging.root.manager.disable
    before = [(module, name, getattr(module, name)) for module, name, _ in patches]
    logging.disable(logging.CRITICAL)
    try:
        for module, name, value in patches:
            setattr(module, name, value)
        yield
    finally:
        logging.disable(disabled)
        for module, name, value in reversed(before):
            setattr(module, name, value)
