"""The view of a result, as measure writes it, in bytes.

A TaskMeasured repeats its result, with figures that follow from the result's moments, and with the task's visits and
zone, which the fold knows.
"""

import hashlib
import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from schemas.codec import MAGIC, encode_like, fingerprint, schema_text, schema_versions
from schemas.envelope import NAMESPACE, Producer
from schemas.rollouts import TaskMeasured
from streams.audit.quick_result import Moments, Quick, number, written
from streams.audit.verify.grammar import count_of, long_count, text_of
from streams.measure.exact import Moments as Figures

Take = Callable[[bytes], None]


class ViewWriter:
    """Writes the views of a log's results. like: the header of the recorded ones. take: is given each frame."""

    def __init__(self, like: bytes, take: Take) -> None:
        self._like, self._take = like, take

    def encode(self, view: TaskMeasured) -> None:
        """One that measure made."""
        self._take(encode_like(view, self._like))

    def write(self, result: Quick, visits: int, zone: bytes) -> None:
        """That of a result that was read in bytes. zone: as Avro."""
        shape, envelope = result.shape, result.envelope
        assert envelope is not None
        cause, run, at, correlation = envelope.group("event_id", "run_id", "occurred_at", "correlation_id")
        parts = (
            self._like,
            shape.group,
            number(result.epoch),
            number(result.step),
            shape.task,
            shape.purpose,
            shape.category,
            _figures(result.moments, count_of(shape.k)),
            number(visits),
            zone,
            number(_newest(result.slots.versions)),
            _event_id(run, shape.group),
            run,
            at,
            _MEASURE,
            cause,
            correlation,
        )
        self._take(b"".join(parts))


@cache
def view_header() -> bytes:
    """Of views of the newest schema version."""
    kind = TaskMeasured.KIND
    return MAGIC + fingerprint(schema_text(kind, schema_versions(kind)[-1]))


_MEASURE = written(Producer.MEASURE.value) + b"\2\x48"
"""Who wrote it, and that a cause of 36 characters follows."""


@lru_cache(maxsize=65_536)
def _figures(moments: Moments, k: int) -> bytes:
    """Mean, phi and variance, live and failed slots, turns passed and in total."""
    figures = Figures(*moments)
    shown = b"\0\0\0"
    if figures.n:
        shown = b"".join([b"\2" + struct.pack("<d", one) for one in figures.shown])
    counts = (figures.n, k - figures.n, figures.sum_passed, figures.turns_total)
    return shown + b"".join(map(number, counts))


@lru_cache(maxsize=4096)
def _newest(versions: bytes) -> int:
    """The largest of an array of one block."""
    count, at = long_count(versions, 0)
    largest = 0
    for _ in range(count):
        version, at = long_count(versions, at)
        largest = max(largest, version)
    return largest


@lru_cache(maxsize=64)
def _started(run: bytes) -> Any:
    """The hash of a run's views, up to their natural key (`schemas.envelope.event_id`)."""
    name = b"".join([b"%d:%s" % (len(part), part) for part in (text_of(run), TaskMeasured.KIND.encode())])
    return hashlib.sha1(NAMESPACE.bytes + name, usedforsecurity=False)


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _event_id(run: bytes, group: bytes) -> bytes:
    bare = text_of(group)
    name = _started(run).copy()
    name.update(b"%d:%s" % (len(bare), bare))
    digest = name.hexdigest()
    laid = f"H{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{_VARIANT[digest[16]]}{digest[17:20]}-{digest[20:32]}"
    return laid.encode()
