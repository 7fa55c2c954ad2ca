"""Topic names, their keys and partitions, and the partitioner.

A topic is ``<prefix><name>``. The learner computes `partition_of` once per task; everyone else writes to the partition
number that its input came from.
"""

from enum import StrEnum

DEFAULT_PREFIX = "rods."


class Topic(StrEnum):
    EPOCHS = "epochs"
    ASSIGNMENTS = "assignments"
    ROLLOUTS = "rollouts"
    TRAJECTORIES = "trajectories"
    MEASUREMENTS = "measurements"
    SEALS = "seals"
    SEEDS = "seeds"
    SYNTHESIS = "synthesis"
    POOL = "pool"
    DEAD_LETTERS = "dead-letters"

    def named(self, prefix: str) -> str:
        """The full topic name under a prefix."""
        return f"{prefix}{self.value}"

    @property
    def by_task(self) -> bool:
        """Whether the topic has N partitions keyed by task, rather than one."""
        return self in _BY_TASK

    def carries(self, kind: str) -> bool:
        """Whether events of a kind belong here. Whoever may write to a topic can put others there: every reader passes
        over them as over bytes that are no event."""
        return kind in KINDS[self]


_BY_TASK = frozenset(
    {Topic.ASSIGNMENTS, Topic.ROLLOUTS, Topic.TRAJECTORIES, Topic.MEASUREMENTS, Topic.SEEDS, Topic.SYNTHESIS}
)

KINDS: dict[Topic, frozenset[str]] = {
    Topic.EPOCHS: frozenset(
        {
            "LearnerStarted",
            "EpochOpened",
            "StepOpened",
            "StepClosed",
            "EpochClosed",
            "PolicyPublished",
            "PolicyEvaluated",
            "AlarmRaised",
        }
    ),
    Topic.ASSIGNMENTS: frozenset({"LearnerStarted", "GroupRequested"}),
    Topic.ROLLOUTS: frozenset({"LearnerStarted", "RolloutFinished", "BarrierReached"}),
    Topic.TRAJECTORIES: frozenset({"TrajectoryRecorded"}),
    Topic.MEASUREMENTS: frozenset({"TaskMeasured"}),
    Topic.SEALS: frozenset({"PartitionSealed", "SelectionClosed"}),
    Topic.SEEDS: frozenset({"BoundarySeedSelected"}),
    Topic.SYNTHESIS: frozenset({"StageFinished", "VariantRejected"}),
    Topic.POOL: frozenset(
        {
            "LearnerStarted",
            "TaskRegistered",
            "VariantVerified",
            "SeedSettled",
            "BoundaryOpened",
            "TaskInjected",
            "TaskRetired",
            "TaskProbed",
            "PoolMaterialized",
            "OperatorDecided",
        }
    ),
    Topic.DEAD_LETTERS: frozenset({"EventRefused"}),
}

DOWNSTREAM_FIRST: tuple[Topic, ...] = (
    Topic.DEAD_LETTERS,
    Topic.POOL,
    Topic.SYNTHESIS,
    Topic.SEEDS,
    Topic.SEALS,
    Topic.MEASUREMENTS,
    Topic.ROLLOUTS,
    Topic.TRAJECTORIES,
    Topic.ASSIGNMENTS,
    Topic.EPOCHS,
)
"""Ends taken in this order give a cut in which no decision is without what it was decided on."""


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 (seed 0x9747b28c), unsigned."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ word
    tail = data[whole:]
    if tail:
        value = (value ^ int.from_bytes(tail, "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


def partition_of(key: str, partitions: int) -> int:
    """The partition of a raw UTF-8 key, as Kafka's default partitioner computes it."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions
