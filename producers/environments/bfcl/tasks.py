"""The package's records as task definitions, and the split that keeps a scenario on one side."""

import json
from collections.abc import Iterator
from typing import Any

from producers.environments.bfcl.package import task_records
from producers.environments.errors import TaskSourceError
from schemas.task import Category, TaskDefinition, Turn

TRAIN_SCENARIOS = range(100)
HELDOUT_SCENARIOS = range(100, 200)
_SPLITS = {"train": TRAIN_SCENARIOS, "heldout": HELDOUT_SCENARIOS}


def read_split(split: str) -> Iterator[TaskDefinition]:
    """The 400 tasks of a split, category by category. A scenario is shared by the four, so it decides the side.

    Raises TaskSourceError for another split, at once.
    """
    if split not in _SPLITS:
        raise TaskSourceError(f"there is no split {split[:80]!r}: take train or heldout")
    return (
        definition(record, truth, category)
        for category in Category
        for record, truth in task_records(category)
        if _scenario(record) in _SPLITS[split]
    )


def definition(record: dict[str, Any], truth: list[list[str]], category: Category) -> TaskDefinition:
    """One record of the package as a task definition under the package's own id.

    The state keeps the package's order of keys, since a simulator lists files and records in that order.
    """
    classes = tuple(record["involved_classes"])
    configurations = {name: record["initial_config"][name] for name in classes if name in record["initial_config"]}
    return TaskDefinition(
        task=record["id"],
        source="bfcl",
        category=category.value,
        scenario=str(_scenario(record)),
        classes=classes,
        initial_state=json.dumps(configurations, separators=(",", ":"), allow_nan=False),
        turns=tuple(_turn(record, truth, number) for number in range(len(truth))),
    )


def _scenario(record: dict[str, Any]) -> int:
    return int(record["id"].rsplit("_", 1)[1])


def _turn(record: dict[str, Any], truth: list[list[str]], number: int) -> Turn:
    requests = tuple(message["content"] for message in record["question"][number])
    return Turn(requests, tuple(truth[number]), _withheld(record, truth, number))


def _withheld(record: dict[str, Any], truth: list[list[str]], number: int) -> tuple[str, ...]:
    """Excluded functions in every turn, missing ones until the turn that reveals them; never one the truth calls."""
    names = set(record.get("excluded_function", ()))
    for revealed, missing in record.get("missed_function", {}).items():
        if number < int(revealed):
            names.update(missing)
    return tuple(sorted(names - {call.split("(", 1)[0].strip() for call in truth[number]}))
