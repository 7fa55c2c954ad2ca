"""What the rules backend knows of a function: how to ask for it, with which arguments, and what it changes.

`Sketch` is the planner's sketch of the simulators: the initial state as a mutable copy that effects keep up to date. It
only has to be right often enough, since every plan is executed before it counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from producers.synthesis.plan import Argument, Ref, Step

Arguments = dict[str, Argument]


@dataclass(slots=True)
class Sketch:
    """Planning state of one attempt. state: class to configuration. folder: the working directory below the root."""

    state: dict[str, Any]
    long_context: bool = False
    steps: list[Step] = field(default_factory=list)
    turn: int = 0
    folder: list[str] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def latest(self, function: str, *path: str | int, within_turn: bool = False) -> Ref | None:
        """A reference into the result of the last step of that function."""
        first = self.turn if within_turn else 0
        for index in range(len(self.steps) - 1, first - 1, -1):
            if self.steps[index].function == function:
                return Ref(index, path)
        return None

    def used(self, function: str, **arguments: Argument) -> bool:
        """Whether a step of that function with these arguments is planned already."""
        wanted = arguments.items()
        return any(s.function == function and wanted <= dict(s.arguments).items() for s in self.steps)


Sampler = Callable[[Sketch, Random], Arguments | None]
Effect = Callable[[Sketch, Arguments], None]
Wording = Callable[[Arguments], tuple[str, ...]]


def _nothing(world: Sketch, arguments: Arguments) -> None:
    del world, arguments


def no_arguments(world: Sketch, rng: Random) -> Arguments | None:
    """For functions without parameters: asked for at most once in a turn."""
    del world, rng
    return {}


@dataclass(frozen=True, slots=True)
class Function:
    """clauses: imperative phrases with ``{parameter}`` slots, or what gives them. implied: parameters said in words.

    vague: parameters that are left open in words of this function's own, each with the sentence that supplies it.
    """

    clauses: tuple[str, ...] | Wording
    sample: Sampler = no_arguments
    effect: Effect = _nothing
    implied: frozenset[str] = frozenset()
    vague: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def wordings(self, arguments: Arguments) -> tuple[str, ...]:
        return self.clauses(arguments) if callable(self.clauses) else self.clauses


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The functions of one class, the sequences that belong together, and how its initial state may be varied."""

    functions: Mapping[str, Function]
    chains: tuple[tuple[str, ...], ...]
    vary: Callable[[dict[str, Any], Random], None]
    goals: tuple[str, ...]
