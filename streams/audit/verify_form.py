"""The exact form of the events that fill a log: results, requests and measurements.

A scan meets millions of them, nearly all well formed. The bytes of a well-formed one are a regular language: every
field in order, each in the range that `verify_values` holds it to, the attempts of a result consistent turn by turn. So
such an event is parsed by a compiled expression that covers each of its bytes, in a fraction of the time that building
values takes. What does not match is not judged here: it is decoded and checked field by field, which finds what is
wrong or, for a text in another script or a rare value, that nothing is.
"""

import hashlib
import re
import struct
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, get_args, get_type_hints

from schemas.catalogue import BY_KIND
from schemas.codec import HEADER_BYTES, MAGIC, fingerprint, schema_text, schema_versions
from schemas.envelope import NAMESPACE, Envelope, Producer
from schemas.rollouts import FailureReason, Purpose, SlotStatus
from schemas.seals import Zone
from streams.audit.verify_identity import NATURAL_KEYS, Expected, check_task

MOST_TURNS = 16
_LONGEST_TEXT = 127
_EVEN = b"[" + b"".join(re.escape(bytes([byte])) for byte in range(0, 0x80, 2)) + b"]"
_EVEN_MORE = b"[" + b"".join(re.escape(bytes([byte])) for byte in range(0x80, 0x100, 2)) + b"]"
_COUNT = rb"(?:" + _EVEN + rb"|" + _EVEN_MORE + rb"[\x80-\xff]{0,7}[\x01-\x7f])"
_POSITIVE = rb"(?!\x00)" + _COUNT
_ATTEMPTS = rb"(?:(?!\x00)" + _EVEN + rb"|" + _EVEN_MORE + rb"[\x01-\x0f]|\x80\x10)"
_FLAG = rb"[\x00\x01]"
_DIGEST = rb"\x80\x01[0-9a-f]{64}"
_NUMBER = rb"[\x00-\xff]{8}"


class Recogniser:
    """Recognises the well-formed events of one partition, each in its place."""

    def __init__(self, expected: Expected) -> None:
        self._forms = _forms(expected.topic.value) if expected.run is not None else {}
        self._run = (expected.run or "").encode("utf-8", "surrogatepass")
        self._started = {form.kind: _hash_start(expected.run or "", form.kind) for form in self._forms.values()}
        self._expected = expected
        self._placed: dict[bytes, bool] = {}

    def attempts(self, key: bytes | None, value: bytes, ids: list[bytes]) -> int | None:
        """How many attempts the event tells of, its id added to `ids`; None where it must be decoded to say more."""
        form = self._forms.get(value[:HEADER_BYTES])
        if form is None or key is None:
            return None
        head = form.head.match(value, HEADER_BYTES)
        if head is None:
            return None
        end, attempts = head.end(), 0
        if form.slots:
            k, total, count = head.group("k", "turns_total", "count")
            if count != k or (slots := _slots(total, k)) is None or (found := slots.match(value, end)) is None:
                return None
            end, attempts = found.end(), _count(k)
        tail = _tail().fullmatch(value, end)
        if tail is None or (form.floats and not all(_in_range(name, head[name]) for name in form.floats)):
            return None
        own_id, run = tail.group("event_id", "run_id")
        if _text(run) != self._run or not self._is_placed(key, _text(head["task"])):
            return None
        if not self._is_id(form, head, own_id):
            return None
        ids.append(own_id)
        return attempts

    def _is_placed(self, key: bytes, task: bytes) -> bool:
        """Whether the record's key is the task, and the task's partition is this one."""
        placed = self._placed.get(key)
        if placed is None:
            placed = check_task(self._expected, key, key.decode("utf-8", "replace")) is None
            self._placed[key] = placed
        return placed and key == task

    def _is_id(self, form: "_Form", head: "re.Match[bytes]", own_id: bytes) -> bool:
        """Whether the id is that of run, kind and natural key (`schemas.envelope.event_id`)."""
        name = self._started[form.kind].copy()
        for field, counted in zip(form.natural, form.counted, strict=True):
            matched = head[field]
            part = b"%d" % _count(matched) if counted else _text(matched)
            name.update(b"%d:%s" % (len(part), part))
        digest = name.hexdigest()
        bare = own_id.decode().replace("-", "")
        return (
            bare[:12] == digest[:12]
            and bare[13:16] == digest[13:16]
            and bare[17:] == digest[17:32]
            and bare[12] == "5"
            and bare[16] == _VARIANT[digest[16]]
        )


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _hash_start(run: str, kind: str) -> Any:
    name = "".join([f"{len(part)}:{part}" for part in (run, kind)])
    return hashlib.sha1(NAMESPACE.bytes + name.encode("utf-8", "surrogatepass"), usedforsecurity=False)


@dataclass(frozen=True, slots=True)
class _Form:
    """head: the fields before the attempts or the envelope. floats: fields whose range is checked apart. natural: the
    natural key's fields; counted: which of them are integers."""

    kind: str
    head: "re.Pattern[bytes]"
    slots: bool
    floats: tuple[str, ...]
    natural: tuple[str, ...]
    counted: tuple[bool, ...]


_KINDS = {"rollouts": "RolloutFinished", "assignments": "GroupRequested", "measurements": "TaskMeasured"}


@cache
def _forms(topic: str) -> dict[bytes, _Form]:
    """By the header of their frames, in the newest version."""
    kind = _KINDS.get(topic)
    if kind is None:
        return {}
    return {MAGIC + fingerprint(schema_text(kind, schema_versions(kind)[-1])): _form(kind)}


def _form(kind: str) -> _Form:
    hints = get_type_hints(BY_KIND[kind])
    names = [field.name for field in fields(BY_KIND[kind]) if field.name not in ("envelope", "slots")]
    parts = [_field(name, hints[name]) for name in names]
    slots = "slots" in hints
    if slots:
        parts.append(b"(?P<count>" + _ATTEMPTS + b")")
    floats = tuple([name for name in names if float in (hints[name], *get_args(hints[name]))])
    natural = NATURAL_KEYS[kind]
    counted = tuple([hints[name] is int for name in natural])
    return _Form(kind, re.compile(b"".join(parts), re.DOTALL), slots, floats, natural, counted)


def _field(name: str, hint: Any) -> bytes:
    optional = type(None) in get_args(hint)
    inner = next((arg for arg in get_args(hint) if arg is not type(None)), hint) if optional else hint
    pattern = _values(name, inner)
    return b"(?P<%s>%s)" % (name.encode(), rb"(?:\x00|\x02%s)" % pattern if optional else pattern)


def _values(name: str, hint: Any) -> bytes:
    if name == "purpose":
        return _one_of(Purpose)
    if name == "zone":
        return _one_of(Zone, "")
    if name == "k":
        return _ATTEMPTS
    if name == "turns_total":
        return _POSITIVE
    return {int: _COUNT, str: _text_pattern(), float: _NUMBER, bool: _FLAG}[hint]


def _one_of(values: Any, *more: str) -> bytes:
    texts = [*(value.value for value in values), *more]
    return b"(?:" + b"|".join(re.escape(_encoded(text)) for text in texts) + b")"


def _encoded(text: str) -> bytes:
    return bytes([2 * len(text)]) + text.encode("ascii")


@cache
def _text_pattern() -> bytes:
    """A printable text of at most so many characters: its length decides how many follow."""
    lengths = [re.escape(_length(length)) + rb"[ -~]{%d}" % length for length in range(_LONGEST_TEXT + 1)]
    return b"(?:" + b"|".join(lengths) + b")"


def _length(length: int) -> bytes:
    return bytes([2 * length]) if length < 64 else bytes([2 * length & 0x7F | 0x80, 2 * length >> 7])


@cache
def _tail() -> "re.Pattern[bytes]":
    """The envelope, to the end of the bytes."""
    hints = get_type_hints(Envelope)
    parts = [
        b"\\x48(?P<event_id>[0-9a-f-]{36})"
        if field.name == "event_id"
        else b"(?P<producer>" + _one_of(Producer) + b")"
        if field.name == "producer"
        else _field(field.name, hints[field.name])
        for field in fields(Envelope)
    ]
    return re.compile(b"".join(parts), re.DOTALL)


@lru_cache(maxsize=256)
def _slots(turns_total: bytes, k: bytes) -> "re.Pattern[bytes] | None":
    """So many attempts at a task of so many turns, and the end of their list; None where only decoding can tell."""
    total, attempts = _count(turns_total), _count(k)
    if total > MOST_TURNS:
        return None
    finished = [
        bytes([2 * passed]) + turns_total + _outcomes((1,) * passed + failed)
        for passed in range(total + 1)
        for failed in ((), (0,))
        if passed + len(failed) <= total
    ]
    ended = _encoded(SlotStatus.FINISHED.value) + b"(?:" + b"|".join(map(re.escape, finished)) + b")"
    passed = b"[" + b"".join(re.escape(bytes([2 * turns])) for turns in range(total + 1)) + b"]"
    judged = b"|".join(rb"%s%s{%d}\x00" % (re.escape(bytes([2 * n])), _FLAG, n) for n in range(1, total + 1))
    lost = _encoded(SlotStatus.FAILED.value) + passed + re.escape(turns_total) + rb"(?:\x00|" + judged + b")"
    counts = _COUNT * 4 + rb"(?:\x00|" + _DIGEST + b")"
    live = ended + counts + rb"(?:\x00|\x02\x00)"
    dead = lost + counts + rb"\x02" + _one_of(FailureReason)
    return re.compile(rb"(?:%s|%s){%d}\x00" % (live, dead, attempts), re.DOTALL)


def _outcomes(outcomes: tuple[int, ...]) -> bytes:
    """An array of flags as it is written: one block, where there are any, and the end."""
    return (bytes([2 * len(outcomes)]) + bytes(outcomes) if outcomes else b"") + b"\0"


def _in_range(name: str, matched: bytes) -> bool:
    """Of a float, or of one that may be null."""
    if len(matched) == 1:
        return True
    (value,) = struct.unpack("<d", matched[-8:])
    return bool(0.0 <= value <= (1.0 if name in ("mean", "phi") else 1.7976931348623157e308))


def _text(encoded: bytes) -> bytes:
    """Without the length before it."""
    return encoded[1:] if encoded[0] < 0x80 else encoded[2:]


@lru_cache(maxsize=4096)
def _count(encoded: bytes) -> int:
    value = 0
    for position, byte in enumerate(encoded):
        value |= (byte & 0x7F) << 7 * position
    return value >> 1
