"""Which columns the audit takes from which events. Changing a set asks for another FORMAT."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from schemas.topics import Topic

FORMAT = "1"
Row = tuple[Any, ...]
_SYMBOL = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """A topic's columns. rows: those of one event, given its offset, its kind and its plain record."""

    topic: Topic
    kinds: frozenset[str]
    schema: pa.Schema
    rows: Callable[[int, str, dict[str, Any]], Iterator[Row]]

    @property
    def symbols(self) -> tuple[str, ...]:
        """The columns with few values, kept as dictionaries."""
        return tuple(field.name for field in self.schema if pa.types.is_dictionary(field.type))


def _seal_rows(offset: int, _: str, seal: dict[str, Any]) -> Iterator[Row]:
    """A row a group; one of the task ``""`` where the chunk holds none, so that no chunk is lost."""
    head = (offset, seal["epoch"], seal["step"], seal["partition"], seal["chunk"], seal["chunks"], seal["digest"])
    for group in seal["groups"]:
        live = [turns for turns in group["passed"] if turns is not None]
        yield (
            *head,
            group["task"],
            group["category"],
            group["purpose"],
            group["zone"],
            group["boundary"],
            group["turns_total"],
            len(group["passed"]),
            len(live),
            sum(live),
            sum([turns * turns for turns in live]),
            group["state"]["visits"],
        )
    if not seal["groups"]:
        yield (*head, "", "", "", "", False, 0, 0, 0, 0, 0, 0)


def _pool_rows(offset: int, kind: str, event: dict[str, Any]) -> Iterator[Row]:
    definition = event.get("definition")
    task = definition["task"] if definition else event.get("task", "")
    parent = (definition["parent"] or "") if definition else ""
    yield (
        offset,
        kind,
        event.get("generation", 0),
        event.get("epoch", 0),
        event.get("step", event.get("last_step", 0)),
        task,
        parent,
        event.get("seed", ""),
        event.get("rule", event.get("outcome", event.get("task_set", event.get("digest", "")))),
        event.get("mean", ""),
        event.get("visits", event.get("rank", event.get("version", 0))),
    )


def _synthesis_rows(offset: int, kind: str, event: dict[str, Any]) -> Iterator[Row]:
    yield (
        offset,
        kind,
        event["epoch"],
        event["step"],
        event["task"],
        event["seed"],
        event["stage"],
        event["index"],
        event["attempt"],
        event.get("ordinal", 0),
        event.get("ok", False),
    )


COLUMN_SETS: dict[Topic, ColumnSet] = {
    Topic.SEALS: ColumnSet(
        Topic.SEALS,
        frozenset({"PartitionSealed"}),
        pa.schema(
            [
                ("offset", pa.int64()),
                ("epoch", pa.int32()),
                ("step", pa.int32()),
                ("partition", pa.int32()),
                ("chunk", pa.int32()),
                ("chunks", pa.int32()),
                ("digest", _SYMBOL),
                ("task", _SYMBOL),
                ("category", _SYMBOL),
                ("purpose", _SYMBOL),
                ("zone", _SYMBOL),
                ("boundary", pa.bool_()),
                ("turns_total", pa.int32()),
                ("k", pa.int32()),
                ("live", pa.int32()),
                ("sum_passed", pa.int64()),
                ("sum_squares", pa.int64()),
                ("visits", pa.int32()),
            ]
        ),
        _seal_rows,
    ),
    Topic.POOL: ColumnSet(
        Topic.POOL,
        frozenset(
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
            }
        ),
        pa.schema(
            [
                ("offset", pa.int64()),
                ("kind", _SYMBOL),
                ("generation", pa.int64()),
                ("epoch", pa.int32()),
                ("step", pa.int32()),
                ("task", _SYMBOL),
                ("parent", _SYMBOL),
                ("seed", _SYMBOL),
                ("word", _SYMBOL),
                ("mean", _SYMBOL),
                ("number", pa.int64()),
            ]
        ),
        _pool_rows,
    ),
    Topic.SYNTHESIS: ColumnSet(
        Topic.SYNTHESIS,
        frozenset({"StageFinished", "VariantRejected"}),
        pa.schema(
            [
                ("offset", pa.int64()),
                ("kind", _SYMBOL),
                ("epoch", pa.int32()),
                ("step", pa.int32()),
                ("task", _SYMBOL),
                ("seed", _SYMBOL),
                ("stage", _SYMBOL),
                ("index", pa.int32()),
                ("attempt", pa.int32()),
                ("ordinal", pa.int32()),
                ("ok", pa.bool_()),
            ]
        ),
        _synthesis_rows,
    ),
}
