"""What `rods doctor` says of one thing that it examined."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """DEGRADED: it works, with less than the design asks for."""

    FINE = "fine"
    DEGRADED = "degraded"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check, in one sentence."""

    check: str
    health: Health
    detail: str
