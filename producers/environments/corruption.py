"""Seeded corruptions of ground truths: near misses on which two judges can be compared.

Case `index` corrupts task ``index % len(tasks)`` by kind ``index // len(tasks) % 6``; what exactly changes follows from
the seed and the index alone. Some corruptions stay valid, such as an added call that only reads: that is the point.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from producers.environments.calls import Call, Value, parse_call
from schemas.task import TaskDefinition

Turns: TypeAlias = tuple[tuple[str, ...], ...]
_Change: TypeAlias = Callable[[Value, random.Random], Value]


class Corruption(StrEnum):
    """What was done to the ground truth."""

    DROPPED = "dropped"
    SWAPPED = "swapped"
    ALTERED = "altered"
    MOVED = "moved"
    RETYPED = "retyped"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Case:
    """One corrupted record. position: of its task among the tasks given."""

    index: int
    position: int
    kind: Corruption
    turns: Turns


def corrupted_cases(tasks: Sequence[TaskDefinition], seed: int, count: int) -> Iterator[Case]:
    """The first `count` cases of a seed, in order."""
    spare = _calls_by_classes(tasks)
    kinds = tuple(Corruption)
    for index in range(count):
        position = index % len(tasks)
        kind = kinds[index // len(tasks) % len(kinds)]
        task = tasks[position]
        chance = random.Random(f"{seed}:{index}")
        turns = corrupt(tuple(turn.ground_truth for turn in task.turns), kind, chance, spare[task.classes])
        yield Case(index, position, kind, turns)


def corrupt(turns: Turns, kind: Corruption, chance: random.Random, spare: Sequence[str]) -> Turns:
    """The turns with one thing wrong. Without a call to work on, or a value to change, a call from `spare` is added."""
    places = [(turn, place) for turn, calls in enumerate(turns) for place in range(len(calls))]
    if kind in (Corruption.ALTERED, Corruption.RETYPED):
        places = [place for place in places if _values(parse_call(turns[place[0]][place[1]]))]
    rows = [list(calls) for calls in turns]
    if kind is Corruption.ADDED or not places:
        row = rows[chance.randrange(len(rows))]
        row.insert(chance.randint(0, len(row)), chance.choice(spare))
    else:
        _corrupt_at(rows, kind, chance, *chance.choice(places))
    return tuple(tuple(row) for row in rows)


def _corrupt_at(rows: list[list[str]], kind: Corruption, chance: random.Random, turn: int, place: int) -> None:
    if kind is Corruption.DROPPED:
        del rows[turn][place]
    elif kind is Corruption.SWAPPED:
        other = chance.choice([(row, column) for row, calls in enumerate(rows) for column in range(len(calls))])
        rows[turn][place], rows[other[0]][other[1]] = rows[other[0]][other[1]], rows[turn][place]
    elif kind is Corruption.MOVED:
        call = rows[turn].pop(place)
        row = rows[chance.randrange(len(rows))]
        row.insert(chance.randint(0, len(row)), call)
    else:
        change = _altered if kind is Corruption.ALTERED else _retyped
        call_read = parse_call(rows[turn][place])
        at = chance.randrange(_values(call_read))
        rows[turn][place] = _with_value(call_read, at, change, chance).text()


def _calls_by_classes(tasks: Sequence[TaskDefinition]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for task in tasks:
        calls = found.setdefault(task.classes, {})
        calls.update((call, None) for turn in task.turns for call in turn.ground_truth)
    return {classes: list(calls) for classes, calls in found.items()}


def _values(call: Call) -> int:
    return len(call.args) + len(call.kwargs)


def _with_value(call: Call, at: int, change: _Change, chance: random.Random) -> Call:
    args = tuple(change(value, chance) if number == at else value for number, value in enumerate(call.args))
    kwargs = tuple(
        (name, change(value, chance) if len(args) + number == at else value)
        for number, (name, value) in enumerate(call.kwargs)
    )
    return Call(call.name, args, kwargs)


def _altered(value: Value, chance: random.Random) -> Value:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + chance.choice((-10, -1, 1, 2, 10))
    if isinstance(value, str):
        return chance.choice((value + "x", value[1:], value[:-1], value.swapcase(), f" {value}", f"{value} (copy)"))
    if isinstance(value, dict):
        return {key: _altered(item, chance) for key, item in value.items()}
    items = list(value)
    return chance.choice((items[1:], items[::-1], [*items, "x"], [_altered(item, chance) for item in items]))


def _retyped(value: Value, chance: random.Random) -> Value:
    return chance.choice(_other_types(value))


def _other_types(value: Value) -> tuple[Value, ...]:
    if isinstance(value, bool) or value is None:
        return (str(value), int(bool(value)))
    if isinstance(value, int | float):
        return (str(value), float(value), int(value), [value])
    if isinstance(value, str):
        number = int(value) if value.isascii() and value.isdigit() and len(value) < 19 else len(value)
        return (number, [value], None, {value: value}, (value,), True)
    return (str(value), None, 0, {"value": value}, (value,))
