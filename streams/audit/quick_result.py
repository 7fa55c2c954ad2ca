"""A result as measure needs it, in the bytes that its seal repeats.

Nearly every result of a log is well formed and all its slots are live. Such a frame is matched whole by a compiled
expression (see `verify_form`), which gives the few values that a seal is made of as they are written, in a fraction of
the time that decoding and encoding again take. Any other frame is decoded, and judged by the rules of measure.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from schemas.codec import HEADER_BYTES, MAGIC, fingerprint, schema_text, schema_versions
from schemas.quick_write import varint
from schemas.rollouts import Purpose, RolloutFinished, SlotStatus
from schemas.rules import canonical_json
from streams.audit.verify.form import MOST_TURNS
from streams.audit.verify.grammar import ATTEMPTS, COUNT, DIGEST, POSITIVE, count_of, encoded, envelope_pattern, one_of
from streams.audit.verify.grammar import text_pattern as text
from streams.measure.outcome import DIGEST_LENGTH, Outcome, outcome_of

MOST_SLOTS = 64
Moments = tuple[int, int, int, int]
"""n, sum, sum of squares of live slots, and turns in total."""


class Shape(NamedTuple):
    """What a barrier expects of a group, its texts and numbers as they are written."""

    group: bytes
    task: bytes
    purpose: bytes
    k: bytes
    turns_total: bytes
    category: bytes


class Slots(NamedTuple):
    """What a seal repeats of a group's slots: arrays as they are written, and lists as canonical JSON writes them.
    text_bytes: of all reasons and trajectories."""

    passed: bytes
    reasons: bytes
    versions: bytes
    trajectories: bytes
    passed_json: bytes
    reasons_json: bytes
    text_bytes: int


class Quick(NamedTuple):
    """A result that may be one. envelope: the match of its envelope, where it was read in bytes."""

    epoch: int
    step: int
    shape: Shape
    execution: bytes
    moments: Moments
    slots: Slots
    envelope: "re.Match[bytes] | None" = None


def quick_result(value: bytes) -> Quick | None:
    """The result in a frame; None where only decoding can tell."""
    if value[:HEADER_BYTES] != _header():
        return None
    head = _head().match(value, HEADER_BYTES)
    if head is None:
        return None
    group, execution, epoch, step, task, purpose, category, k, turns_total, count = head.groups()
    if count != k or (slots := _live_slots(turns_total, k)) is None:
        return None
    found = slots.match(value, head.end())
    envelope = envelope_pattern().fullmatch(value, found.end()) if found else None
    if found is None or envelope is None:
        return None
    parts = found.groups()
    shape = Shape(group, task, purpose, k, turns_total, category)
    turns = b"".join(parts[0::3])
    passed, moments, passed_json = _passed(turns, k, turns_total)
    versions = b"".join((k, *parts[1::3], b"\0"))
    named = b"".join(parts[2::3])
    trajectories = b"".join((k, named, b"\0"))
    reasons, reasons_json = _no_reasons(k)
    text_bytes = DIGEST_LENGTH * ((len(named) - moments[0]) // (1 + DIGEST_LENGTH))
    figures = Slots(passed, reasons, versions, trajectories, passed_json, reasons_json, text_bytes)
    return Quick(count_of(epoch), count_of(step), shape, execution, moments, figures, envelope)


def quick_event(event: RolloutFinished) -> Quick:
    """A decoded result of the right form (see `streams.measure.fold`), by the rules of measure."""
    outcome = outcome_of(event)
    return Quick(
        event.epoch,
        event.step,
        shape_of(event.group, event.task, event.purpose, event.k, event.turns_total, event.category),
        written(event.execution),
        outcome.moments,
        slots_of(
            outcome,
            [slot.policy_version for slot in event.slots],
            [slot.trajectory[:DIGEST_LENGTH] for slot in event.slots],
        ),
    )


def shape_of(group: str, task: str, purpose: str, k: int, turns_total: int, category: str) -> Shape:
    """The shape of decoded values."""
    often = _written_often
    return Shape(written(group), written(task), often(purpose), number(k), number(turns_total), often(category))


def slots_of(outcome: Outcome, versions: Iterable[int], trajectories: Iterable[str]) -> Slots:
    """What a seal says of an outcome's slots."""
    named = list(trajectories)
    return Slots(
        _array([b"\0" if turns is None else b"\2" + number(turns) for turns in outcome.passed]),
        _array([written(reason) for reason in outcome.reasons]),
        _array([number(version) for version in versions]),
        _array([written(trajectory) for trajectory in named]),
        canonical_json(outcome.passed).encode(),
        canonical_json(outcome.reasons).encode(),
        sum([len(text.encode()) for text in (*outcome.reasons, *named)]),
    )


def _array(items: list[bytes]) -> bytes:
    return b"".join((number(len(items)), *items, b"\0")) if items else b"\0"


def written(value: str) -> bytes:
    """A text as Avro writes it."""
    data = value.encode()
    return number(len(data)) + data


_written_often = lru_cache(maxsize=4096)(written)


def number(value: int) -> bytes:
    """An integer as Avro writes it, zig-zag."""
    return _SMALL[value] if 0 <= value < 64 else _number(value)


@lru_cache(maxsize=65_536)
def _number(value: int) -> bytes:
    return varint(value)


_SMALL = [bytes([2 * value]) for value in range(64)]


@cache
def _header() -> bytes:
    kind = RolloutFinished.KIND
    return MAGIC + fingerprint(schema_text(kind, schema_versions(kind)[-1]))


@cache
def _head() -> "re.Pattern[bytes]":
    """The fields before the slots, and their number: all but a name's lengths are the grammar's."""
    parts = (text(), text(), COUNT, COUNT, text(), one_of(Purpose), text(), ATTEMPTS, POSITIVE, ATTEMPTS)
    return re.compile(b"".join([b"(%s)" % part for part in parts]), re.DOTALL)


@lru_cache(maxsize=256)
def _live_slots(turns_total: bytes, k: bytes) -> "re.Pattern[bytes] | None":
    """So many live slots of a task of so many turns, and the end of their list. Of each: turns passed, policy version
    and trajectory."""
    total, attempts = count_of(turns_total), count_of(k)
    if not 1 <= total <= MOST_TURNS or not 1 <= attempts <= MOST_SLOTS:
        return None
    ended = b"|".join([_ended(passed, total) for passed in range(total + 1)])
    # A look-ahead takes the turns passed, and then the alternatives say all that must follow.
    slot = encoded(SlotStatus.FINISHED.value) + rb"(?=(.))(?:" + ended + b")" + COUNT * 3
    slot += b"(" + COUNT + rb")(\x00|" + DIGEST + rb")(?:\x00|\x02\x00)"
    return re.compile(slot * attempts + rb"\x00", re.DOTALL)


def _ended(passed: int, total: int) -> bytes:
    """An attempt that passed so many turns: no failure follows them, or one does."""
    start = re.escape(bytes([2 * passed, 2 * total]))
    outcomes = [(1,) * passed, *([(1,) * passed + (0,)] if passed < total else [])]
    return start + b"(?:" + b"|".join(re.escape(_flags(flags)) for flags in outcomes) + b")"


def _flags(flags: tuple[int, ...]) -> bytes:
    return (bytes([2 * len(flags)]) + bytes(flags) if flags else b"") + b"\0"


Passed = tuple[bytes, Moments, bytes]


def _passed(turns: bytes, k: bytes, turns_total: bytes) -> Passed:
    """Of live slots' turns, each twice its number in a byte: the array, the moments, the list."""
    doubled = sum(turns)
    squares = sum(map(_QUARTER_SQUARES, turns))
    array = b"".join((k, b"\2", b"\2".join(map(_SINGLE, turns)), b"\0"))
    listed = b"[" + b",".join(map(_DECIMAL, turns)) + b"]"
    return array, (len(turns), doubled >> 1, squares, count_of(turns_total)), listed


_SINGLE = [bytes([value]) for value in range(256)].__getitem__
_QUARTER_SQUARES = [(value >> 1) ** 2 for value in range(256)].__getitem__
_DECIMAL = [b"%d" % (value >> 1) for value in range(256)].__getitem__


@lru_cache(maxsize=256)
def _no_reasons(k: bytes) -> tuple[bytes, bytes]:
    slots = count_of(k)
    return k + bytes(slots) + b"\0", b"[" + b",".join([b'""'] * slots) + b"]"
