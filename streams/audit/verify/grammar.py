"""The bytes of Avro values as expressions: what a well-formed field looks like, in its range.

Integers are zig-zag varints of at most nine bytes in their shortest form, texts are printable ASCII of up to 127
characters. A value of another form may still be fine; it is for a decoder to say.
"""

import re
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, get_args, get_type_hints

from schemas.envelope import Envelope, Producer
from schemas.rollouts import Purpose
from schemas.seals import Zone

LONGEST_TEXT = 127
_EVEN = b"[" + b"".join(re.escape(bytes([byte])) for byte in range(0, 0x80, 2)) + b"]"
_EVEN_MORE = b"[" + b"".join(re.escape(bytes([byte])) for byte in range(0x80, 0x100, 2)) + b"]"
SMALL_COUNT = _EVEN
COUNT = rb"(?:" + _EVEN + rb"|" + _EVEN_MORE + rb"[\x80-\xff]{0,7}[\x01-\x7f])"
POSITIVE = rb"(?!\x00)" + COUNT
ATTEMPTS = rb"(?:(?!\x00)" + _EVEN + rb"|" + _EVEN_MORE + rb"[\x01-\x0f]|\x80\x10)"
FLAG = rb"[\x00\x01]"
DIGEST = rb"\x80\x01[0-9a-f]{64}"
NUMBER = rb"[\x00-\xff]{8}"


def field_pattern(name: str, hint: Any) -> bytes:
    """A field of an event's type, as a group of its name."""
    optional = type(None) in get_args(hint)
    inner = next((arg for arg in get_args(hint) if arg is not type(None)), hint) if optional else hint
    pattern = value_pattern(name, inner)
    return b"(?P<%s>%s)" % (name.encode(), rb"(?:\x00|\x02%s)" % pattern if optional else pattern)


def value_pattern(name: str, hint: Any) -> bytes:
    """A value of a type; some names stand for a set of values."""
    if name == "purpose":
        return one_of(Purpose)
    if name == "zone":
        return one_of(Zone, "")
    if name == "k":
        return ATTEMPTS
    if name == "turns_total":
        return POSITIVE
    return {int: COUNT, str: text_pattern(), float: NUMBER, bool: FLAG}[hint]


def one_of(values: Any, *more: str) -> bytes:
    """One of an enumeration's values."""
    texts = [*(value.value for value in values), *more]
    return b"(?:" + b"|".join(re.escape(encoded(text)) for text in texts) + b")"


def encoded(text: str) -> bytes:
    """A short text as it is written."""
    return bytes([2 * len(text)]) + text.encode("ascii")


@cache
def text_pattern() -> bytes:
    """A printable text of at most so many characters: its length decides how many follow."""
    lengths = [re.escape(_length(length)) + rb"[ -~]{%d}" % length for length in range(LONGEST_TEXT + 1)]
    return b"(?:" + b"|".join(lengths) + b")"


def _length(length: int) -> bytes:
    return bytes([2 * length]) if length < 64 else bytes([2 * length & 0x7F | 0x80, 2 * length >> 7])


@cache
def envelope_pattern() -> "re.Pattern[bytes]":
    """The envelope, to the end of the bytes."""
    hints = get_type_hints(Envelope)
    parts = [
        b"\\x48(?P<event_id>[0-9a-f-]{36})"
        if field.name == "event_id"
        else b"(?P<producer>" + one_of(Producer) + b")"
        if field.name == "producer"
        else field_pattern(field.name, hints[field.name])
        for field in fields(Envelope)
    ]
    return re.compile(b"".join(parts), re.DOTALL)


def text_of(matched: bytes) -> bytes:
    """Without the length before it."""
    return matched[1:] if matched[0] < 0x80 else matched[2:]


@lru_cache(maxsize=4096)
def count_of(matched: bytes) -> int:
    """The integer that was matched."""
    value = 0
    for position, byte in enumerate(matched):
        value |= (byte & 0x7F) << 7 * position
    return value >> 1


def long_count(data: bytes, at: int) -> tuple[int, int]:
    """The integer that begins here and where it ends; -1 where none does that counts something."""
    value = 0
    for position, byte in enumerate(data[at : at + 9]):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return (-1 if value & 1 else value >> 1), at + position + 1
    return -1, at
