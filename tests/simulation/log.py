"""The log in memory, what is on its way to it, and the consumer group that reads it."""

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

from schemas.topics import Topic

Place = tuple[Topic, int]
SEALS: Place = (Topic.SEALS, 0)


class Log:
    """Topics as lists of values by partition."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.records: dict[Place, list[Any]] = {
            (topic, partition): [] for topic in Topic for partition in range(partitions if topic.by_task else 1)
        }

    def append(self, place: Place, value: Any) -> int:
        """The offset that the value got."""
        records = self.records[place]
        records.append(value)
        return len(records) - 1

    def end(self, place: Place) -> int:
        return len(self.records[place])


@dataclass(slots=True)
class Send:
    """A value on its way. offset: where it stands, None until the broker has it."""

    value: Any
    offset: int | None = None


@dataclass(slots=True)
class Network:
    """What senders have posted and the broker does not have yet: in order by sender and partition, in none between."""

    queues: dict[tuple[str, Place], deque[Send]] = field(default_factory=dict)

    def post(self, sender: str, place: Place, value: Any) -> Send:
        send = Send(value)
        self.queues.setdefault((sender, place), deque()).append(send)
        return send

    def take(self, key: tuple[str, Place]) -> Send:
        """The next of a queue."""
        queue = self.queues[key]
        send = queue.popleft()
        if not queue:
            del self.queues[key]
        return send

    def cut(self, sender: str, rng: Random) -> None:
        """The sender has died: of each of its queues, the broker will see a beginning."""
        for key in [key for key in self.queues if key[0] == sender]:
            queue = self.queues[key]
            kept = rng.randint(0, len(queue))
            while len(queue) > kept:
                queue.pop()
            if not queue:
                del self.queues[key]


@dataclass(slots=True)
class Group:
    """The consumer group of the streams service. Commits of an older generation are refused."""

    generation: int = 0
    members: dict[str, tuple[Place, ...]] = field(default_factory=dict)
    committed: dict[Place, int] = field(default_factory=dict)

    def commit(self, member: str, generation: int, place: Place, offset: int) -> bool:
        if generation != self.generation or place not in self.members.get(member, ()):
            return False
        self.committed[place] = offset
        return True
