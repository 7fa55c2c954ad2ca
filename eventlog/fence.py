"""The generation fence: what a learner wrote after a newer one had started counts for nothing. Pure.

Every fold keeps the newest generation that its partition has shown and asks here about each event.
"""

from typing import Any

from schemas.pool import SeedSettled


def superseded(event: Any, newest: int) -> bool:
    """Whether an older learner than the newest seen wrote the event.

    An event without a generation is no learner's, and neither is a settlement of generation 0: synthesis wrote it.
    """
    if isinstance(event, SeedSettled) and event.generation == 0:
        return False
    generation: int | None = getattr(event, "generation", None)
    return generation is not None and generation < newest
