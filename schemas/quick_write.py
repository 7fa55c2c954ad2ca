"""The bodies of the two events that `measure` writes most, laid out here: a third of the time fastavro takes. Pure.

The bytes are fastavro's for the newest schema of each, which a test holds them to. Avro's binary encoding
(specification 1.11): a long is a zigzag varint, a string its length and UTF-8, an array one block and a zero, a union
its branch and the value.
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from schemas.envelope import Envelope
from schemas.rollouts import TaskMeasured
from schemas.seals import PartitionSealed, SealedGroup, TaskState, WindowGroup

_SHA256_LENGTH = 64
_double = struct.Struct("<d").pack


def varint(value: int) -> bytes:
    """An Avro long. Raises OverflowError where it is none."""
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} is no long")
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_SMALL = tuple([varint(value) for value in range(2048)])
_END = _SMALL[0]
_NULL, _VALUE = _SMALL[0], _SMALL[1]


def _long(value: int) -> bytes:
    return _SMALL[value] if 0 <= value < 2048 else varint(value)


def _boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _text(value: str) -> bytes:
    raw = value.encode()
    return _long(len(raw)) + raw


_name = lru_cache(maxsize=512)(_text)
"""A text of which there are few: a category, a zone, a role."""


def _optional_text(value: str | None) -> bytes:
    return _NULL if value is None else _VALUE + _text(value)


def _optional_double(value: float | None) -> bytes:
    return _NULL if value is None else _VALUE + _double(value)


def _optional_long(value: int | None) -> bytes:
    return _NULL if value is None else _VALUE + _long(value)


_OPTIONAL = {value: _optional_long(value) for value in (None, *range(64))}


def _array(items: Sequence[bytes]) -> bytes:
    return b"".join([_long(len(items)), *items, _END]) if items else _END


@lru_cache(maxsize=512)
def _few_texts(values: tuple[str, ...]) -> bytes:
    return _array([_text(value) for value in values])


@lru_cache(maxsize=512)
def _few_longs(values: tuple[int, ...]) -> bytes:
    return _array([_long(value) for value in values])


def _passed(values: tuple[int | None, ...]) -> bytes:
    return _array([_OPTIONAL.get(value) or _optional_long(value) for value in values])


def _digests(values: tuple[str, ...]) -> bytes:
    """Texts that mostly are all as long as a sha256."""
    text = "\x7f".join(values)
    if {*map(len, values)} != {_SHA256_LENGTH} or not text.isascii() or text.count("\x7f") >= len(values):
        return _array([_text(value) for value in values])
    length = _long(_SHA256_LENGTH)
    return _long(len(values)) + length + text.encode().replace(b"\x7f", length) + _END


def _envelope(envelope: Envelope) -> bytes:
    return b"".join(
        (
            _text(envelope.event_id),
            _name(envelope.run_id),
            _long(envelope.occurred_at),
            _name(envelope.producer),
            _optional_text(envelope.causation_id),
            _optional_text(envelope.correlation_id),
        )
    )


def measured_body(event: TaskMeasured) -> bytes:
    """The body of a TaskMeasured."""
    return b"".join(
        (
            _text(event.group),
            _long(event.epoch),
            _long(event.step),
            _text(event.task),
            _name(event.purpose),
            _name(event.category),
            _optional_double(event.mean),
            _optional_double(event.phi),
            _optional_double(event.variance),
            _long(event.live),
            _long(event.failed),
            _long(event.turns_passed),
            _long(event.turns_total),
            _long(event.visits),
            _name(event.zone),
            _long(event.policy_version),
            _envelope(event.envelope),
        )
    )


def sealed_body(event: PartitionSealed) -> bytes:
    """The body of a PartitionSealed."""
    numbers = (event.epoch, event.step, event.partition, event.partitions, event.chunk, event.chunks)
    counts = (event.late, event.duplicate, event.refused, event.generation)
    return b"".join(
        (
            *map(_long, numbers),
            _long(event.barrier_offset),
            _boolean(event.last_of_epoch),
            _text(event.rules),
            _long(event.pool_offset),
            _text(event.digest),
            _array([_group(group) for group in event.groups]),
            _array([_task(state) for state in event.state]),
            *map(_long, counts),
            _envelope(event.envelope),
        )
    )


def _group(group: SealedGroup) -> bytes:
    return b"".join(
        (
            _text(group.group),
            _text(group.task),
            _name(group.purpose),
            _name(group.category),
            _text(group.execution),
            _long(group.turns_total),
            _passed(group.passed),
            _few_texts(group.reasons),
            _few_longs(group.policy_versions),
            _digests(group.trajectories),
            _name(group.zone),
            _boolean(group.boundary),
            _task(group.state),
        )
    )


def _task(state: TaskState) -> bytes:
    return b"".join(
        (
            _text(state.task),
            _name(state.category),
            _array([_window(group) for group in state.window]),
            _long(state.visits),
            _long(state.low_streak),
            _long(state.high_streak),
        )
    )


def _window(group: WindowGroup) -> bytes:
    numbers = (group.n, group.sum_passed, group.sum_squares, group.turns_total)
    return _text(group.group) + b"".join(map(_long, numbers))


BODIES: dict[str, Callable[[Any], bytes]] = {TaskMeasured.KIND: measured_body, PartitionSealed.KIND: sealed_body}
"""By kind. What the schema cannot hold raises TypeError, ValueError, OverflowError, AttributeError or struct.error."""
