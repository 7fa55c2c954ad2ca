"""The planner's sketch of the simulators: the initial state as a mutable copy that effects keep up to date.

It only has to be right often enough, since every plan is executed before it counts.
"""

from collections.abc import Callable
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
