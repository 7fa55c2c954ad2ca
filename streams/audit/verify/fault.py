"""What `verify` finds wrong, and where."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class FaultKind(StrEnum):
    """What kind of wrong. The values are keys of `rods audit verify --json` and stay."""

    MANIFEST = "manifest"
    CHAIN = "chain"
    MISSING = "missing"
    STRAY = "stray"
    CHANGED = "changed"
    UNREADABLE = "unreadable"
    GAP = "gap"
    DUPLICATE = "duplicate"
    TORN = "torn"
    UNKNOWN_SCHEMA = "unknown_schema"
    UNDECODABLE = "undecodable"
    MISPLACED = "misplaced"
    VALUE = "value"
    SCHEMA_TEXT = "schema_text"
    CUT = "cut"
    SET_ASIDE = "set_aside"
    TRAJECTORY = "trajectory"
    HEAD = "head"
    SIGNATURE = "signature"


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A fault in one place.

    order: of places, for sorting. file: relative to the archive. offset: of the record, or the first that the fault may
    concern; last: the last one, where that is a range; both None where no offset is concerned.
    """

    order: tuple[int, ...]
    file: str
    kind: FaultKind
    offset: int | None
    last: int | None
    meaning: str

    def line(self) -> str:
        """For a person, in one line."""
        span = "" if self.last is None or self.last == self.offset else f" to {self.last}"
        where = self.file if self.offset is None else f"{self.file}, offset {self.offset}{span}"
        return f"{where}: {self.meaning}"

    def as_json(self) -> dict[str, Any]:
        """Without the sort key."""
        values = asdict(self)
        del values["order"]
        return values
