"""The environment port: reset from a task, the tools on offer this turn, call, judge a turn.

An environment belongs to one attempt and is freed with it; nothing it holds is shared with another.
Its text input is model output and hostile: see `producers.environments.calls` for what may pass.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.task import TaskDefinition


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer: name, one-line description, and its parameters as a JSON schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallResult:
    """What one call came to. A failed call (`ok` False) is data for the model, never an exception.

    text: the result or the error as the model reads it, at most 20,000 characters.
    """

    text: str
    ok: bool


class Environment(Protocol):
    """One attempt's world. `judge` closes the current turn and moves on to the next one."""

    def tools(self) -> Sequence[Tool]:
        """The tools on offer in the current turn."""
        ...

    def call(self, text: str) -> CallResult:
        """Runs one call given in source form, such as ``cd(folder='a')``. Never raises for bad text."""
        ...

    def judge(self) -> bool:
        """Whether the current turn passed: state and responses match the ground truth. Closes the turn."""
        ...


class TaskSource(Protocol):
    """A named set of tasks and the environments that run them.

    `tasks(split)` yields originals in a fixed order; split is ``train`` or ``heldout``.
    `reset(task)` gives a fresh environment at the task's first turn, also for variants.
    """

    @property
    def name(self) -> str: ...

    def tasks(self, split: str) -> Iterable[TaskDefinition]: ...

    def reset(self, task: TaskDefinition) -> Environment: ...
