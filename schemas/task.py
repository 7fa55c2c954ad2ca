"""The definition of a task: everything needed to run and judge it, self-contained in the log.

A task is a short conversation of user turns. Each turn asks for something that tool calls against the
task's simulators accomplish; its ground truth is the call sequence whose effects and results define success.
"""

from dataclasses import dataclass
from enum import StrEnum


class Category(StrEnum):
    """The four kinds of multi-turn task (BFCL V3's names for them)."""

    BASE = "base"
    MISSING_FUNCTION = "miss_func"
    MISSING_PARAMETER = "miss_param"
    LONG_CONTEXT = "long_context"


@dataclass(frozen=True, slots=True)
class Turn:
    """One user turn.

    requests: what the user says, one message each; empty where the turn only reveals withheld tools.
    ground_truth: calls in source form, such as ``cd(folder='a')``, in order; empty where none is right.
    withheld: names of tools that exist in the task's classes but are not on offer during this turn.
    """

    requests: tuple[str, ...]
    ground_truth: tuple[str, ...]
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A complete task, as it travels in TaskRegistered and VariantVerified.

    task: id, unique within a run.
    source: the environment that runs it (``workbench`` or ``bfcl``).
    category: one of `Category`, or the source's own.
    scenario: what a split must not divide.
    classes: the simulators involved.
    initial_state: canonical JSON, class name to its configuration.
    parent: the task this one is a variant of, or None for an original.
    """

    task: str
    source: str
    category: str
    scenario: str
    classes: tuple[str, ...]
    initial_state: str
    turns: tuple[Turn, ...]
    parent: str | None = None

    @property
    def turns_total(self) -> int:
        """The fixed denominator of the task's progress reward."""
        return len(self.turns)
