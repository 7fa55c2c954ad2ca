"""The task source `bfcl`."""

from collections.abc import Iterator, Sequence

from producers.environments.bfcl.documents import tools_of
from producers.environments.bfcl.environment import BfclEnvironment, EmptyTurn
from producers.environments.bfcl.tasks import read_split
from producers.environments.port import Environment, Tool
from schemas.task import TaskDefinition


class BfclSource:
    """All 800 multi-turn tasks of the package, and fresh environments for them and for variants of them.

    empty_turn: `passes` judges as the package's checker does; `no_calls` is the stricter setting for rewards.
    """

    def __init__(self, empty_turn: EmptyTurn | str = EmptyTurn.PASSES) -> None:
        self._empty_turn = EmptyTurn(empty_turn)
        self._tools: dict[str, tuple[Tool, ...]] = {}

    @property
    def name(self) -> str:
        """The name by which tasks name their source."""
        return "bfcl"

    def tasks(self, split: str) -> Iterator[TaskDefinition]:
        """The 400 originals of ``train`` or ``heldout``, in the package's order. Raises TaskSourceError."""
        return read_split(split)

    def reset(self, task: TaskDefinition) -> Environment:
        """A fresh environment from the definition alone. Raises TaskSourceError or EnvironmentFault."""
        return BfclEnvironment(task, self._tools_of, self._empty_turn)

    def _tools_of(self, class_name: str) -> Sequence[Tool]:
        if class_name not in self._tools:
            self._tools[class_name] = tools_of(class_name)
        return self._tools[class_name]
