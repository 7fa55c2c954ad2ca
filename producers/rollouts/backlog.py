"""What a rollout worker has taken and not delivered: admission, and order.

    assignments -> read (fence) -> batch (drops what is too late) -> done

One class owns the order of groups at hand. It knows partitions by number and nothing of Kafka. How far a partition may
be committed is kept in `TakenOffsets`.
"""

from dataclasses import dataclass
from typing import Any

from eventlog.fence import superseded
from eventlog.offsets import TakenOffsets
from schemas.epochs import LearnerStarted
from schemas.rollouts import GroupRequested, Purpose

STEPS_IN_FLIGHT = 1


@dataclass(frozen=True, slots=True)
class Assigned:
    """A group to run, and where its request lies."""

    partition: int
    offset: int
    request: GroupRequested


@dataclass(slots=True)
class _Seen:
    """What a partition has shown. step: the latest that a request here belongs to."""

    generation: int = 0
    step: int = 0


class Backlog:
    """Requests at hand, in the order they were read. What a partition that was lost had waiting is dropped."""

    def __init__(self, offsets: TakenOffsets) -> None:
        self._offsets = offsets
        self._seen: dict[int, _Seen] = {}
        self._waiting: list[Assigned] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def read(self, partition: int, offset: int, event: Any | None) -> None:
        """Takes a record; None stands for one that holds no event. One already taken changes nothing."""
        if not self._offsets.take(partition, offset):
            return
        seen = self._seen.setdefault(partition, _Seen())
        if isinstance(event, GroupRequested) and event.k > 0 and not superseded(event, seen.generation):
            seen.generation = event.generation
            seen.step = max(seen.step, event.step)
            self._waiting.append(Assigned(partition, offset, event))
            return
        if isinstance(event, LearnerStarted) and not superseded(event, seen.generation):
            seen.generation = event.generation
        self._offsets.done(partition, offset)

    def batch(self, limit: int) -> list[Assigned]:
        """Up to `limit` different groups to run now, oldest first. What is too late is dropped and counts as done."""
        chosen: list[Assigned] = []
        rest: list[Assigned] = []
        groups: set[str] = set()
        for assigned in self._waiting:
            if not self._wanted(assigned):
                self.done(assigned)
            elif len(chosen) < limit and assigned.request.group not in groups:
                chosen.append(assigned)
                groups.add(assigned.request.group)
            else:
                rest.append(assigned)
        self._waiting = rest
        return chosen

    def done(self, assigned: Assigned) -> None:
        """The group is delivered or dropped."""
        self._offsets.done(assigned.partition, assigned.offset)

    def _wanted(self, assigned: Assigned) -> bool:
        if not self._offsets.is_open(assigned.partition, assigned.offset):
            return False
        request, seen = assigned.request, self._seen[assigned.partition]
        if superseded(request, seen.generation):
            return False
        return request.purpose == Purpose.EVALUATE or seen.step <= request.step + STEPS_IN_FLIGHT
