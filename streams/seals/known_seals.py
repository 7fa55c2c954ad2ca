"""Seals that this process wrote, by their bytes, so that reading them back costs no decoding.

A worker that selects reads what it has just written as measure; decoding a seal of hundreds of groups again took a
tenth of its time. Equal bytes are equal events, so nothing changes but the cost.
"""

from schemas.seals import PartitionSealed

MAX_BYTES = 16 * 1024 * 1024


class KnownSeals:
    """Bounded: past `MAX_BYTES` the oldest are forgotten, as those are that another worker reads."""

    def __init__(self) -> None:
        self._events: dict[bytes, PartitionSealed] = {}
        self._bytes = 0

    def remember(self, frame: bytes, event: PartitionSealed) -> None:
        """Keeps an event for the one time it is asked for. A frame above the bound is not kept."""
        if frame in self._events:
            return
        self._events[frame] = event
        self._bytes += len(frame)
        while self._bytes > MAX_BYTES:
            self.recall(next(iter(self._events)))

    def recall(self, frame: bytes) -> PartitionSealed | None:
        """The event of a frame that was remembered, and forgets it; None for any other."""
        event = self._events.pop(frame, None)
        if event is not None:
            self._bytes -= len(frame)
        return event
