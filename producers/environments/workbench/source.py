"""The workbench as a task source."""

from collections.abc import Iterator

from producers.environments.errors import TaskSourceError
from producers.environments.workbench.dial import NORMAL, Dial
from producers.environments.workbench.environment import WorkbenchEnvironment
from producers.environments.workbench.generate import SOURCE, SPLITS, generate
from schemas.task import TaskDefinition


class WorkbenchSource:
    """Generated tasks in two splits that share no state and no call sequence, of the sizes given."""

    def __init__(self, seed: int = 1, train: int = 256, heldout: int = 1024, dial: Dial = NORMAL) -> None:
        if min(train, heldout) < 0:
            raise TaskSourceError("the sizes of the workbench's splits must not be negative")
        self._seed = seed
        self._sizes = {"train": train, "heldout": heldout}
        self._dial = dial

    @property
    def name(self) -> str:
        return SOURCE

    def tasks(self, split: str) -> Iterator[TaskDefinition]:
        """The split's tasks in order. Raises TaskSourceError for a split that does not exist."""
        if split not in self._sizes:
            raise TaskSourceError(f"the workbench has the splits {' and '.join(SPLITS)}, not {split[:40]!r}")
        return (generate(self._seed, index, split, self._dial) for index in range(self._sizes[split]))

    def reset(self, task: TaskDefinition) -> WorkbenchEnvironment:
        """A fresh environment; all it needs is in the task. Raises EnvironmentFault for a state that cannot be read."""
        return WorkbenchEnvironment(task)
