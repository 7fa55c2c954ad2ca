"""What a stream passes over and an operator should hear of: counted beside the log's own line, and decides nothing."""

from collections.abc import Callable
from enum import StrEnum


class Notice(StrEnum):
    """SUPERSEDED: an event of an older learner. CONTRADICTED: a second fact of a key that says something else, or a
    selection that no seal supports. UNKNOWN_SCHEMA: a partition stopped before an event that a newer writer wrote."""

    SUPERSEDED = "superseded"
    CONTRADICTED = "contradicted"
    UNKNOWN_SCHEMA = "unknown_schema"


Notify = Callable[[Notice], None]


def silent(_: Notice) -> None:
    """Tells nobody."""
