"""A workbench attempt: the policy's world beside a twin that only the ground truth touches.

A turn passes when the two worlds are equal, each ground-truth result occurs as often among this turn's results, and no
more than `SURPLUS_CALLS` calls were made beyond the ground truth's; a turn without ground truth passes only when no
call was made. Strict where BFCL is lenient, so that surplus reads are no free lunch for a policy that trains here.
"""

from collections.abc import Sequence

from producers.environments.errors import EnvironmentFault
from producers.environments.judge import responses_match, states_match
from producers.environments.port import CallResult, Tool
from producers.environments.workbench.tools import tools_of
from producers.environments.workbench.world import World
from schemas.task import TaskDefinition, Turn

SURPLUS_CALLS = 2


class WorkbenchEnvironment:
    """Runs one task once. Raises EnvironmentFault for a task whose own state or ground truth does not run."""

    def __init__(self, task: TaskDefinition) -> None:
        self._task = task
        self._turn = 0
        self._made = 0
        self._results: list[str] = []
        try:
            self._world = World.parse(task.classes, task.initial_state)
            self._twin = World.parse(task.classes, task.initial_state)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise EnvironmentFault(f"task {task.task} has no valid initial state: {error!r}") from None

    def tools(self) -> Sequence[Tool]:
        """The tools on offer in the current turn."""
        withheld = self._current().withheld
        return [spec.tool() for name in self._task.classes for spec in tools_of(name) if spec.name not in withheld]

    def call(self, text: str) -> CallResult:
        """Runs one call in source form. Never raises for bad text; every text counts as a call made."""
        self._made += 1
        result = self._world.run_text(text, self._current().withheld)
        if result.ok:
            self._results.append(result.text)
        return result

    def judge(self) -> bool:
        """Whether the turn passed; closes it. Raises EnvironmentFault where a ground-truth call does not run."""
        turn = self._current()
        expected = [self._expect(text) for text in turn.ground_truth]
        passed = self._few_enough(turn) and responses_match(self._results, expected)
        passed = passed and states_match(self._world.domains.values(), self._twin.domains.values())
        self._turn, self._made, self._results = self._turn + 1, 0, []
        return passed

    def _current(self) -> Turn:
        if self._turn >= len(self._task.turns):
            raise EnvironmentFault(f"task {self._task.task} has no turn {self._turn}")
        return self._task.turns[self._turn]

    def _few_enough(self, turn: Turn) -> bool:
        return self._made <= len(turn.ground_truth) + SURPLUS_CALLS if turn.ground_truth else self._made == 0

    def _expect(self, text: str) -> str:
        result = self._twin.run_text(text)
        if not result.ok:
            raise EnvironmentFault(f"task {self._task.task}: ground truth {text[:80]} fails: {result.text}")
        return result.text
