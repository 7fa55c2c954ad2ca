"""Whether an event is the one its place and its id say: its topic, its partition, its run, its natural key.

An event's id derives from run, kind and natural key, so a key that was edited no longer fits its id. Checks on plain
records, as a scan decodes them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from schemas.envelope import event_id
from schemas.identity import content_digest_of, variant_id
from schemas.topics import Topic, partition_of

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


def check_identity(expected: Expected, key: bytes | None, kind: str, record: dict[str, Any]) -> str | None:
    """What is wrong with an event's identity or place, or None."""
    if not expected.topic.carries(kind):
        return f"{kind} does not travel on {expected.topic.value}"
    envelope = record["envelope"]
    if expected.run is not None and envelope["run_id"] != expected.run:
        return f"the event belongs to the run {envelope['run_id'][:80]!r}, and the log to {expected.run!r}"
    if envelope["event_id"] != event_id(envelope["run_id"], kind, natural_key(kind, record)):
        return "the event's id is not that of its run, kind and natural key"
    if kind in _CARRY_THEIR_TASK and (wrong := check_task(expected, key, record["task"])):
        return wrong
    special = _SPECIAL.get(kind)
    return special(expected, record) if special else None


def natural_key(kind: str, record: dict[str, Any]) -> tuple[str, ...]:
    """The natural key of a plain record, as its type's property gives it."""
    return tuple([str(_value(record, name)) for name in NATURAL_KEYS[kind]])


def _value(record: dict[str, Any], name: str) -> Any:
    outer, _, inner = name.partition(".")
    return record[outer][inner] if inner else record[outer]


def check_task(expected: Expected, key: bytes | None, task: str) -> str | None:
    """What is wrong with the key or the partition of an event that carries its task, or None."""
    if key is None or key != task.encode("utf-8", "surrogatepass"):
        return f"the record's key is not the task {task[:80]!r}"
    if expected.partitions is not None and _partition(task, expected.partitions) != expected.partition:
        return f"the task {task[:80]!r} belongs to partition {_partition(task, expected.partitions)}"
    return None


@lru_cache(maxsize=200_000)
def _partition(task: str, partitions: int) -> int:
    return partition_of(task, partitions)


def _own_partition(expected: Expected, record: dict[str, Any]) -> str | None:
    if record["partition"] != expected.partition:
        return f"the barrier of partition {record['partition']} stands in another one"
    return None


def _variant(_: Expected, record: dict[str, Any]) -> str | None:
    definition = record["definition"]
    content = content_digest_of(definition)
    if record["content"] != content:
        return "the variant's content is not what its sha256 says"
    return (
        None
        if definition["task"] == variant_id(record["seed"], content)
        else "the variant's id does not follow from its content"
    )


def _refused(_: Expected, record: dict[str, Any]) -> str | None:
    cut = len(record["value"]) >= 64 * 1024
    if not cut and hashlib.sha256(record["value"]).hexdigest() != record["sha256"]:
        return "the refused bytes do not have the sha256 beside them"
    return None


_SPECIAL: dict[str, Callable[[Expected, dict[str, Any]], str | None]] = {
    "BarrierReached": _own_partition,
    "VariantVerified": _variant,
    "EventRefused": _refused,
}
