"""A partition's records, one after the other: is each at the offset that is next, and an event that could be?

Whoever reads them, from a segment or from a broker, says where a fault is.
"""

import hashlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from schemas.codec import decode_plain
from schemas.errors import SchemaError, UnknownFingerprintError
from streams.audit.verify.batch import Batch
from streams.audit.verify.fault import FaultKind
from streams.audit.verify.identity import Expected, check_identity
from streams.audit.verify.payload import packed
from streams.audit.verify.values import check_values

_BATCH_BYTES = 1024 * 1024
Tell = Callable[[FaultKind, int, str, int | None], None]
"""Takes a fault: its kind, the offset, the meaning, and the last offset where it concerns several."""


@dataclass(slots=True)
class Counts:
    """What records came to. ids: 64 bits of each event's id, to find facts told twice. refused: known poison. payloads:
    of trajectories, for `verify_payload`."""

    records: int = 0
    attempts: int = 0
    refused: int = 0
    ids: "array[int]" = field(default_factory=lambda: array("Q"))
    payloads: bytes = b""


class _Frame(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes
    record: dict[str, Any]


class RecordReading:
    """Takes a partition's records from an offset on, and checks some hundred of a kind at once. refused: offset and
    sha256 of bytes that the dead letters tell of. Call `counts` once, behind the last."""

    def __init__(self, expected: Expected, refused: frozenset[tuple[int, str]], first: int, tell: Tell) -> None:
        self.next = first
        self._expected = expected
        self._refused = refused
        self._tell = tell
        self._counts = Counts()
        self._waiting: dict[str, list[_Frame]] = {}
        self._waiting_bytes = 0
        self._faults: list[tuple[int, FaultKind, str]] = []
        self._ids: list[str] = []
        self._payloads: list[bytes] = []

    def counts(self) -> Counts:
        """What all records came to."""
        self._check_waiting()
        self._counts.ids = _halves(self._ids)
        self._counts.payloads = b"".join(self._payloads)
        return self._counts

    def take(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """The next record."""
        if offset != self.next:
            self._check_waiting()
            self._misplaced(offset)
        self.next = offset + 1
        self._counts.records += 1
        if value is None:
            self._faults.append((offset, FaultKind.UNDECODABLE, "the record has no value"))
            return
        try:
            kind, _, record = decode_plain(value)
        except UnknownFingerprintError as error:
            self._faults.append((offset, FaultKind.UNKNOWN_SCHEMA, str(error)))
        except SchemaError as error:
            self._wrong(FaultKind.UNDECODABLE, _Frame(offset, key, value, {}), f"the record is no event: {error}")
        else:
            self._waiting.setdefault(kind, []).append(_Frame(offset, key, value, record))
        self._waiting_bytes += len(value)
        if self._waiting_bytes >= _BATCH_BYTES:
            self._check_waiting()

    def _misplaced(self, offset: int) -> None:
        if offset > self.next:
            self._tell(FaultKind.GAP, self.next, f"offset {offset} follows where {self.next} is next", offset - 1)
        else:
            meaning = f"offset {offset} stands where {self.next} is next: it came twice or out of order"
            self._tell(FaultKind.DUPLICATE, offset, meaning, self.next)

    def _check_waiting(self) -> None:
        """Checks what has come since the last time. Its faults are told in the order of offsets."""
        for kind, frames in self._waiting.items():
            if not self._are_faultless(kind, frames):
                for frame in frames:
                    self._check(kind, frame)
        for offset, fault, meaning in sorted(self._faults):
            self._tell(fault, offset, meaning, None)
        self._waiting, self._waiting_bytes, self._faults = {}, 0, []

    def _are_faultless(self, kind: str, frames: list[_Frame]) -> bool:
        """Whether all are, which then are counted."""
        batch = Batch([frame.record for frame in frames])
        keys = [frame.key for frame in frames]
        if check_identity(self._expected, keys, kind, batch) or check_values(kind, batch):
            return False
        self._count(kind, batch)
        self._pack(kind, batch, frames)
        return True

    def _check(self, kind: str, frame: _Frame) -> None:
        batch = Batch([frame.record])
        if wrong := check_identity(self._expected, [frame.key], kind, batch):
            self._wrong(FaultKind.MISPLACED, frame, f"{kind}: {wrong}")
            self._count_attempts(kind, batch)
            return
        self._count(kind, batch)
        if wrong := check_values(kind, batch):
            self._wrong(FaultKind.VALUE, frame, f"{kind}: {wrong}")
        else:
            self._pack(kind, batch, [frame])

    def _count(self, kind: str, batch: Batch) -> None:
        """Counts events that are in their place."""
        self._count_attempts(kind, batch)
        if kind != "LearnerStarted":  # told to every partition by design
            self._ids += batch.part("envelope")["event_id"]

    def _count_attempts(self, kind: str, batch: Batch) -> None:
        if kind == "RolloutFinished":
            self._counts.attempts += sum(batch.counts("slots"))

    def _pack(self, kind: str, batch: Batch, frames: list[_Frame]) -> None:
        if kind == "TrajectoryRecorded":
            self._payloads += packed(batch, [frame.offset for frame in frames])

    def _wrong(self, kind: FaultKind, frame: _Frame, meaning: str) -> None:
        """A fault, unless the dead letters tell of these bytes here."""
        if self._refused and (frame.offset, hashlib.sha256(frame.value).hexdigest()) in self._refused:
            self._counts.refused += 1
        else:
            self._faults.append((frame.offset, kind, meaning))


_HEX = np.zeros(256, dtype=np.uint64)
_HEX[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16, dtype=np.uint64)
_FIRST_DIGITS = [position for position in range(18) if position not in (8, 13)]
_PLACES = np.array([4 * power for power in range(15, -1, -1)], dtype=np.uint64)


def _halves(ids: list[str]) -> "array[int]":
    """The first 64 bits of each UUID."""
    digits = np.frombuffer("".join(ids).encode(), dtype=np.uint8).reshape(-1, 36)[:, _FIRST_DIGITS]
    halves = np.bitwise_or.reduce(_HEX[digits] << _PLACES, axis=1)
    return array("Q", halves.astype(np.uint64).tobytes())
