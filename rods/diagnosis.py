"""What `rods doctor` says of one thing that it examined."""

from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """DEGRADED: it works, with less than the design asks for."""

    FINE = "fine"
    DEGRADED = "degraded"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome of one check, in one sentence."""

    check: str
    health: Condition
    detail: str


def fine(check: str, detail: str) -> Diagnosis:
    return Diagnosis(check, Condition.FINE, detail)


def degraded(check: str, detail: str) -> Diagnosis:
    return Diagnosis(check, Condition.DEGRADED, detail)


def broken(check: str, detail: str) -> Diagnosis:
    return Diagnosis(check, Condition.BROKEN, detail)
