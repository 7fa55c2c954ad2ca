"""The exact form of the events that fill a log: results, requests, measurements and seals.

A scan meets millions of them, nearly all well formed. The bytes of a well-formed one are a regular language: every
field in order, each in the range that `verify_values` holds it to, the attempts of a result consistent turn by turn. So
such an event is parsed by a compiled expression that covers each of its bytes, in a fraction of the time that building
values takes. What does not match is not judged here: it is decoded and checked field by field, which finds what is
wrong or, for a text in another script or a rare value, that nothing is.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, get_args, get_type_hints

from schemas.catalogue import BY_KIND
from schemas.codec import HEADER_BYTES, MAGIC, fingerprint, schema_text, schema_versions
from schemas.envelope import NAMESPACE
from schemas.rollouts import FailureReason, SlotStatus
from schemas.topics import Topic
from streams.audit.verify.form_seal import SealForm
from streams.audit.verify.grammar import (
    ATTEMPTS,
    COUNT,
    DIGEST,
    FLAG,
    count_of,
    encoded,
    envelope_pattern,
    field_pattern,
    one_of,
    text_of,
)
from streams.audit.verify.identity import NATURAL_KEYS, Expected, check_task

MOST_TURNS = 16


class Recogniser:
    """Recognises the well-formed events of one partition, each in its place."""

    def __init__(self, expected: Expected) -> None:
        self._forms = _forms(expected.topic.value) if expected.run is not None else {}
        self._run = (expected.run or "").encode("utf-8", "surrogatepass")
        self._started = {form.kind: _hash_start(expected.run or "", form.kind) for form in self._forms.values()}
        self._seals = SealForm() if expected.topic is Topic.SEALS and expected.run is not None else None
        self._started["PartitionSealed"] = _hash_start(expected.run or "", "PartitionSealed")
        self._expected = expected
        self._placed: dict[bytes, bool] = {}

    def attempts(self, key: bytes | None, value: bytes, ids: list[bytes]) -> int | None:
        """How many attempts the event tells of, its id added to `ids`; None where it must be decoded to say more."""
        if self._seals is not None:
            return self._seal(value, ids)
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
            end, attempts = found.end(), count_of(k)
        tail = envelope_pattern().fullmatch(value, end)
        if tail is None or (form.floats and not all(_in_range(name, head[name]) for name in form.floats)):
            return None
        own_id, run = tail.group("event_id", "run_id")
        if text_of(run) != self._run or not self._is_placed(key, text_of(head["task"])):
            return None
        natural = [
            b"%d" % count_of(head[field]) if counted else text_of(head[field])
            for field, counted in zip(form.natural, form.counted, strict=True)
        ]
        if not self._is_id(form.kind, natural, own_id):
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

    def _seal(self, value: bytes, ids: list[bytes]) -> int | None:
        found = self._seals.match(value) if self._seals else None
        if found is None or text_of(found.run) != self._run:
            return None
        if not self._is_id("PartitionSealed", found.natural, found.event_id):
            return None
        ids.append(found.event_id)
        return 0

    def _is_id(self, kind: str, natural: Sequence[bytes], own_id: bytes) -> bool:
        """Whether the id is that of run, kind and natural key (`schemas.envelope.event_id`)."""
        name = self._started[kind].copy()
        for part in natural:
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
    parts = [field_pattern(name, hints[name]) for name in names]
    slots = "slots" in hints
    if slots:
        parts.append(b"(?P<count>" + ATTEMPTS + b")")
    floats = tuple([name for name in names if float in (hints[name], *get_args(hints[name]))])
    natural = NATURAL_KEYS[kind]
    counted = tuple([hints[name] is int for name in natural])
    return _Form(kind, re.compile(b"".join(parts), re.DOTALL), slots, floats, natural, counted)


@lru_cache(maxsize=256)
def _slots(turns_total: bytes, k: bytes) -> "re.Pattern[bytes] | None":
    """So many attempts at a task of so many turns, and the end of their list; None where only decoding can tell."""
    total, attempts = count_of(turns_total), count_of(k)
    if total > MOST_TURNS:
        return None
    finished = [
        bytes([2 * passed]) + turns_total + _outcomes((1,) * passed + failed)
        for passed in range(total + 1)
        for failed in ((), (0,))
        if passed + len(failed) <= total
    ]
    ended = encoded(SlotStatus.FINISHED.value) + b"(?:" + b"|".join(map(re.escape, finished)) + b")"
    passed = b"[" + b"".join(re.escape(bytes([2 * turns])) for turns in range(total + 1)) + b"]"
    judged = b"|".join(rb"%s%s{%d}\x00" % (re.escape(bytes([2 * n])), FLAG, n) for n in range(1, total + 1))
    lost = encoded(SlotStatus.FAILED.value) + passed + re.escape(turns_total) + rb"(?:\x00|" + judged + b")"
    counts = COUNT * 4 + rb"(?:\x00|" + DIGEST + b")"
    live = ended + counts + rb"(?:\x00|\x02\x00)"
    dead = lost + counts + rb"\x02" + one_of(FailureReason)
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
