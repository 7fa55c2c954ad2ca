"""Whether an event is the one its place and its id say: its topic, its partition, its run, its natural key.

An event's id derives from run, kind and natural key, so a key that was edited no longer fits its id. Checks on many
events of a kind at once.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat

from schemas.envelope import event_id
from schemas.identity import content_digest_of, variant_id
from schemas.topics import Topic, partition_of
from streams.audit.verify.batch import Batch

NATURAL_KEYS: dict[str, tuple[str, ...]] = {
    "LearnerStarted": ("generation", "nonce"),
    "EpochOpened": ("epoch",),
    "StepOpened": ("epoch", "step"),
    "StepClosed": ("epoch", "step"),
    "EpochClosed": ("epoch",),
    "PolicyPublished": ("version",),
    "PolicyEvaluated": ("version", "task_set", "temperature"),
    "AlarmRaised": ("kind", "epoch", "step"),
    "GroupRequested": ("epoch", "step", "task", "group"),
    "RolloutFinished": ("group",),
    "BarrierReached": ("epoch", "step", "partition"),
    "TrajectoryRecorded": ("group", "execution", "attempt"),
    "TaskMeasured": ("group",),
    "PartitionSealed": ("epoch", "step", "partition", "chunk"),
    "SelectionClosed": ("epoch", "step"),
    "BoundarySeedSelected": ("epoch", "step", "task"),
    "StageFinished": ("seed", "index", "attempt", "stage", "ordinal"),
    "VariantRejected": ("seed", "index", "attempt", "stage"),
    "TaskRegistered": ("definition.task",),
    "VariantVerified": ("definition.task",),
    "SeedSettled": ("seed",),
    "BoundaryOpened": ("epoch",),
    "TaskInjected": ("epoch", "task"),
    "TaskRetired": ("epoch", "task"),
    "TaskProbed": ("epoch", "task"),
    "PoolMaterialized": ("epoch",),
    "OperatorDecided": ("decision_id",),
    "EventRefused": ("topic", "partition", "offset"),
}
"""The fields of each kind's natural key, in order, as `natural_key` of its type gives them."""

_CARRY_THEIR_TASK = frozenset(
    {
        "GroupRequested",
        "RolloutFinished",
        "TrajectoryRecorded",
        "TaskMeasured",
        "BoundarySeedSelected",
        "StageFinished",
        "VariantRejected",
    }
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What every event of a partition must agree with. run, partitions: None where the log does not tell them."""

    topic: Topic
    partition: int
    run: str | None
    partitions: int | None


def check_identity(expected: Expected, keys: Sequence[bytes | None], kind: str, batch: Batch) -> str | None:
    """What is wrong with the identity or the place of one of these events, or None. keys: of their records."""
    if not expected.topic.carries(kind):
        return f"{kind} does not travel on {expected.topic.value}"
    envelope = batch.part("envelope")
    runs = envelope["run_id"]
    for run in set(runs):
        if expected.run is not None and run != expected.run:
            return f"the event belongs to the run {run[:80]!r}, and the log to {expected.run!r}"
    if list(map(event_id, runs, repeat(kind), natural_keys(kind, batch))) != envelope["event_id"]:
        return "the event's id is not that of its run, kind and natural key"
    if kind in _CARRY_THEIR_TASK and (wrong := _check_tasks(expected, keys, batch["task"])):
        return wrong
    special = _SPECIAL.get(kind)
    return special(expected, batch) if special else None


def natural_keys(kind: str, batch: Batch) -> Iterator[tuple[str, ...]]:
    """The natural key of each event, as its type's property gives it."""
    return zip(*[map(str, _column(batch, name)) for name in NATURAL_KEYS[kind]], strict=True)


def _column(batch: Batch, name: str) -> Sequence[object]:
    outer, _, inner = name.partition(".")
    return batch.part(outer)[inner] if inner else batch[outer]


def _check_tasks(expected: Expected, keys: Sequence[bytes | None], tasks: Sequence[str]) -> str | None:
    """What is wrong with the key or the partition of an event that carries its task, or None."""
    for key, task in zip(keys, tasks, strict=True):
        if key != task.encode("utf-8", "surrogatepass"):
            return f"the record's key is not the task {task[:80]!r}"
    for task in set(tasks):
        if expected.partitions is not None and _partition(task, expected.partitions) != expected.partition:
            return f"the task {task[:80]!r} belongs to partition {_partition(task, expected.partitions)}"
    return None


@lru_cache(maxsize=200_000)
def _partition(task: str, partitions: int) -> int:
    return partition_of(task, partitions)


def _own_partition(expected: Expected, batch: Batch) -> str | None:
    wrong = [partition for partition in batch["partition"] if partition != expected.partition]
    return f"the barrier of partition {wrong[0]} stands in another one" if wrong else None


def _variants(_: Expected, batch: Batch) -> str | None:
    for definition, seed, recorded in zip(batch["definition"], batch["seed"], batch["content"], strict=True):
        content = content_digest_of(definition)
        if recorded != content:
            return "the variant's content is not what its sha256 says"
        if definition["task"] != variant_id(seed, content):
            return "the variant's id does not follow from its content"
    return None


def _refused(_: Expected, batch: Batch) -> str | None:
    for value, sha256 in zip(batch["value"], batch["sha256"], strict=True):
        cut = len(value) >= 64 * 1024
        if not cut and hashlib.sha256(value).hexdigest() != sha256:
            return "the refused bytes do not have the sha256 beside them"
    return None


_SPECIAL: dict[str, Callable[[Expected, Batch], str | None]] = {
    "BarrierReached": _own_partition,
    "VariantVerified": _variants,
    "EventRefused": _refused,
}
