"""Which tasks a run trains on and which it holds out: from a source by name, or from a task file."""

from itertools import islice
from pathlib import Path
from typing import NamedTuple

from producers.environments.errors import TaskSourceError
from producers.environments.port import TaskSource
from producers.environments.sources import SOURCES, source_named
from rods.errors import UserError
from rods.settings import Settings
from schemas.identity import content_digest, digest
from schemas.rules import Rules
from schemas.task import TaskDefinition


class TaskSets(NamedTuple):
    """source: the name of the environment that runs them. originals enter the pool; heldout never do."""

    source: str
    originals: tuple[TaskDefinition, ...]
    heldout: tuple[TaskDefinition, ...]

    @property
    def digest(self) -> str:
        """sha256 over the content of both sets, in order."""
        return digest([[content_digest(task) for task in tasks] for tasks in (self.originals, self.heldout)])


def task_sets(settings: Settings) -> TaskSets:
    """The tasks that the settings name. Raises UserError."""
    limit = settings.rules.pool_tasks or None
    held = settings.rules.learner.evaluate_tasks
    if settings.tasks in SOURCES:
        source = _sized(settings.tasks, settings.rules.pool_tasks, held)
        return TaskSets(
            settings.tasks,
            tuple(islice(source.tasks("train"), limit)),
            tuple(islice(source.tasks("heldout"), held)),
        )
    tasks = _from_file(Path(settings.tasks))
    sources = {task.source for task in tasks}
    if len(sources) != 1:
        raise UserError(f"the tasks of {settings.tasks} must come from one source, not from {sorted(sources)}")
    return TaskSets(sources.pop(), tasks[:limit], ())


def sourced_rules(settings: Settings) -> Rules:
    """The rules with the environment that runs the tasks as their source; a task file says which one it is."""
    if settings.tasks in SOURCES:
        return settings.rules
    return settings.rules.model_copy(update={"source": task_sets(settings).source})


def _sized(name: str, originals: int, heldout: int) -> TaskSource:
    """The workbench generates as many tasks as are asked for."""
    if name == "workbench" and (originals > 256 or heldout > 1024):
        from producers.environments.workbench.source import WorkbenchSource

        return WorkbenchSource(train=max(originals, 256), heldout=max(heldout, 1024))
    return source_named(name)


def _from_file(path: Path) -> tuple[TaskDefinition, ...]:
    from producers.environments.taskfile import read_tasks

    if not path.is_file():
        raise UserError(f"there is no task source or task file {str(path)!r}; choose {', '.join(SOURCES)} or a file")
    try:
        tasks = read_tasks(path)
    except TaskSourceError as error:
        raise UserError(str(error)) from error
    if not tasks:
        raise UserError(f"the task file {path} holds no task")
    return tasks
