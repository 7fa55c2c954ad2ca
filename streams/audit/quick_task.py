"""A task's state as its seals write it, in bytes."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from schemas.rules import canonical_json
from schemas.seals import TaskState, WindowGroup
from streams.audit.quick_result import Moments, number
from streams.audit.verify.grammar import text_of
from streams.measure.exact import pooled

INTEGER, TEXT = 10, 5
"""Upper bounds of an encoded integer, and of a text's length (see `streams.measure.seal`)."""


class Visit(NamedTuple):
    """A group of a window: its moments, and itself as Avro and as canonical JSON. bound: of its encoded size."""

    moments: Moments
    avro: bytes
    json: bytes
    bound: int


class Task(NamedTuple):
    """A task's state, and itself as Avro and as canonical JSON."""

    category: bytes
    window: tuple[Visit, ...]
    visits: int
    low: int
    high: int
    avro: bytes
    json: bytes
    bound: int


def state_of(name: str, category: str, task: Task) -> TaskState:
    """As the fold of measure holds it, but that its window's groups have no names."""
    window = tuple([WindowGroup("", *visit.moments) for visit in task.window])
    return TaskState(name, category, window, task.visits, task.low, task.high)


def visit_of(group: bytes, moments: Moments) -> Visit:
    n, total, squares, turns = moments
    avro = b"".join((group, number(n), number(total), number(squares), number(turns)))
    json = b"[%s,%d,%d,%d,%d]" % (json_text(group), n, total, squares, turns)
    return Visit(moments, avro, json, len(text_of(group)) + TEXT + 4 * INTEGER)


def task_of(name: bytes, category: bytes, window: tuple[Visit, ...], visits: int, low: int, high: int) -> Task:
    listed = b"".join((number(len(window)), *[visit.avro for visit in window], b"\0")) if window else b"\0"
    avro = b"".join((name, category, listed, number(visits), number(low), number(high)))
    shown = b",".join([visit.json for visit in window])
    json = b"[%s,%s,[%s],%d,%d,%d]" % (json_text(name), json_text(category), shown, visits, low, high)
    bound = len(text_of(name)) + len(text_of(category)) + 2 * TEXT + 5 * INTEGER
    return Task(category, window, visits, low, high, avro, json, bound + sum([visit.bound for visit in window]))


def pooled_moments(window: Sequence[Visit]) -> Moments:
    """The moments of a window, as `streams.measure.exact.pooled` has them."""
    first = window[0].moments
    if len(window) == 1:
        return first
    others = [visit.moments for visit in window[1:]]
    n, total, squares, turns = first
    for moments in others:
        if moments[3] != turns:
            return pooled([WindowGroup("", *visit.moments) for visit in window])
        n, total, squares = n + moments[0], total + moments[1], squares + moments[2]
    return n, total, squares, turns


_PLAIN = re.compile(rb"[ !#-\[\]-~]*").fullmatch


@lru_cache(maxsize=65_536)
def json_text(text: bytes) -> bytes:
    """A text, given as Avro writes it, in canonical JSON."""
    bare = text_of(text) if text != b"\0" else b""
    return b'"%s"' % bare if _PLAIN(bare) else canonical_json(bare.decode()).encode()
