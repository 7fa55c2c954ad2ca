"""A partition's records, one after the other: is each at the offset that is next, and an event that could be?

Whoever reads them, from a segment or from a broker, says where a fault is.
"""

import hashlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.codec import decode_plain
from schemas.errors import SchemaError, UnknownFingerprintError
from streams.audit.verify.fault import FaultKind
from streams.audit.verify.form import Recogniser
from streams.audit.verify.identity import Expected, check_identity
from streams.audit.verify.payload import packed
from streams.audit.verify.values import check_values

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


class RecordReading:
    """Takes a partition's records from an offset on. refused: offset and sha256 of bytes that the dead letters tell of.
    Call `counts` once, behind the last."""

    def __init__(self, expected: Expected, refused: frozenset[tuple[int, str]], first: int, tell: Tell) -> None:
        self.next = first
        self._expected = expected
        self._refused = refused
        self._tell = tell
        self._counts = Counts()
        self._recogniser = Recogniser(expected)
        self._ids: list[bytes] = []
        self._payloads: list[bytes] = []

    def counts(self) -> Counts:
        """What all records came to."""
        self._counts.ids = _halves(self._ids)
        self._counts.payloads = b"".join(self._payloads)
        return self._counts

    def take(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """The next record."""
        if offset != self.next:
            self._misplaced(offset)
        self.next = offset + 1
        self._counts.records += 1
        if value is None:
            self._tell(FaultKind.UNDECODABLE, offset, "the record has no value", None)
        elif (attempts := self._recogniser.attempts(key, value, self._ids)) is not None:
            self._counts.attempts += attempts
        else:
            self._decoded(offset, key, value)

    def _misplaced(self, offset: int) -> None:
        if offset > self.next:
            self._tell(FaultKind.GAP, self.next, f"offset {offset} follows where {self.next} is next", offset - 1)
        else:
            meaning = f"offset {offset} stands where {self.next} is next: it came twice or out of order"
            self._tell(FaultKind.DUPLICATE, offset, meaning, self.next)

    def _decoded(self, offset: int, key: bytes | None, value: bytes) -> None:
        try:
            kind, _, record = decode_plain(value)
        except UnknownFingerprintError as error:
            self._tell(FaultKind.UNKNOWN_SCHEMA, offset, str(error), None)
        except SchemaError as error:
            self._wrong(FaultKind.UNDECODABLE, offset, f"the record is no event: {error}", value)
        else:
            self._known(offset, key, kind, record, value)

    def _known(self, offset: int, key: bytes | None, kind: str, record: dict[str, Any], value: bytes) -> None:
        fault = FaultKind.MISPLACED
        wrong = check_identity(self._expected, key, kind, record)
        if wrong is None:
            fault, wrong = FaultKind.VALUE, check_values(kind, record)
            if kind != "LearnerStarted":  # told to every partition by design
                self._ids.append(record["envelope"]["event_id"].encode())
        if kind == "RolloutFinished":
            self._counts.attempts += len(record["slots"])
        if wrong is not None:
            self._wrong(fault, offset, f"{kind}: {wrong}", value)
        elif kind == "TrajectoryRecorded":
            self._payloads.append(packed(record, offset))

    def _wrong(self, kind: FaultKind, offset: int, meaning: str, value: bytes) -> None:
        """A fault, unless the dead letters tell of these bytes here."""
        if self._refused and (offset, hashlib.sha256(value).hexdigest()) in self._refused:
            self._counts.refused += 1
        else:
            self._tell(kind, offset, meaning, None)


_HEX = np.zeros(256, dtype=np.uint64)
_HEX[[ord(digit) for digit in "0123456789abcdef"]] = np.arange(16, dtype=np.uint64)
_FIRST_DIGITS = [position for position in range(18) if position not in (8, 13)]
_PLACES = np.array([4 * power for power in range(15, -1, -1)], dtype=np.uint64)


def _halves(ids: list[bytes]) -> "array[int]":
    """The first 64 bits of each UUID."""
    digits = np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(-1, 36)[:, _FIRST_DIGITS]
    halves = np.bitwise_or.reduce(_HEX[digits] << _PLACES, axis=1)
    return array("Q", halves.astype(np.uint64).tobytes())
