"""A plan: a call sequence over a changed initial state, before any text exists.

Arguments of a plan are literals or references to what an earlier step returns, so that the dependency graph is part of
the plan and not guessed afterwards. Planning reads no simulator; executing the plan tells whether it holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from producers.environments.calls import Call, Value
from producers.synthesis.errors import StageError
from producers.synthesis.profile import Profile, profile


@dataclass(frozen=True, slots=True)
class Ref:
    """A value inside the JSON result of an earlier step. step: 0-based in the plan. text: passed on as a string."""

    step: int
    path: tuple[str | int, ...]
    text: bool = False


Argument: TypeAlias = "Value | Ref | tuple[Ref, ...]"


@dataclass(frozen=True, slots=True)
class Step:
    """One planned call. `arguments` keeps the order in which they are written."""

    function: str
    arguments: tuple[tuple[str, Argument], ...] = ()

    def refs(self) -> tuple[Ref, ...]:
        """Every reference among the arguments, in order."""
        found: list[Ref] = []
        for _, value in self.arguments:
            if isinstance(value, Ref):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(item for item in value if isinstance(item, Ref))
        return tuple(found)

    def argument(self, name: str) -> Argument:
        """The argument of that name, or None."""
        return dict(self.arguments).get(name)


@dataclass(frozen=True, slots=True)
class Plan:
    """source, classes and initial_state as in a TaskDefinition; turns of steps; goal: the narrative that binds them.

    category: the world it runs in, which is ``long_context`` or ``base``: what else a seed's category asks for is
    worked in later, by augmentation. withheld: functions that are not on offer in any turn.
    """

    source: str
    classes: tuple[str, ...]
    initial_state: str
    category: str
    goal: str
    turns: tuple[tuple[Step, ...], ...]
    withheld: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for turn in self.turns for step in turn)


def resolve(step: Step, results: Sequence[object]) -> Call:
    """The call a step comes to once the results before it are known. Raises StageError for a dangling reference."""
    return Call(step.function, (), tuple((name, _value(value, results)) for name, value in step.arguments))


def planned_profile(plan: Plan, category: str) -> Profile:
    """Φ of a plan that has not run: references feed, equal literals share; what results may hold besides is unknown."""
    held: list[list[str]] = [[] for _ in plan.steps]
    for step in plan.steps:
        for ref in step.refs():
            held[ref.step].append(_mark(ref))
    turns = [[Call(step.function, (), tuple(_marked(step))) for step in turn] for turn in plan.turns]
    return profile(turns, held, category)


def _mark(ref: Ref) -> str:
    return f"result {ref.step} {ref.path}"


def _marked(step: Step) -> Iterator[tuple[str, Value]]:
    for name, value in step.arguments:
        if isinstance(value, Ref):
            yield name, _mark(value)
        elif isinstance(value, tuple):
            yield name, [_mark(item) if isinstance(item, Ref) else item for item in value]
        else:
            yield name, value


def _value(value: Argument, results: Sequence[object]) -> Value:
    if isinstance(value, Ref):
        return _lookup(value, results)
    if isinstance(value, tuple) and value and all(isinstance(item, Ref) for item in value):
        return [_lookup(item, results) for item in value if isinstance(item, Ref)]
    return value  # type: ignore[return-value]


def _lookup(ref: Ref, results: Sequence[object]) -> Value:
    found: object = results[ref.step] if ref.step < len(results) else None
    for key in ref.path:
        try:
            found = found[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            raise StageError("an earlier result lacks the value that a later call needs") from None
    if isinstance(found, Mapping) or found is None:
        raise StageError("an earlier result lacks the value that a later call needs")
    return str(found) if ref.text else found  # type: ignore[return-value]
