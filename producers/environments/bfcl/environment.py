"""One attempt at a BFCL task, judged as the package's checker judges it.

The model's calls and the ground truth's act on two sets of simulators that belong to this attempt. A turn with calls
in its ground truth fails when nothing was called, when the states differ, or when a result of the ground truth was not
seen often enough; a turn without any always passes, unless `EmptyTurn.NO_CALLS` asks for silence.
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum

from producers.environments.bfcl.package import simulator_class
from producers.environments.bfcl.simulators import Simulators
from producers.environments.calls import DEFAULT_LIMITS, parse_call
from producers.environments.errors import CallError, EnvironmentFault
from producers.environments.judge import responses_match, states_match
from producers.environments.port import CallResult, Tool
from schemas.task import Category, TaskDefinition

RESULT_CHARACTERS = 20_000
CALLS_PER_TURN = 1_000

_FUNCTION_NAME = re.compile(r"\b([a-zA-Z_]\w*)\s*(?=\()")


class EmptyTurn(StrEnum):
    """What a turn with an empty ground truth asks for: nothing, as the package's checker, or that nothing is called."""

    PASSES = "passes"
    NO_CALLS = "no_calls"


class BfclEnvironment:
    """The port's verbs for one attempt. `judge` closes the turn; after a failed turn every turn fails."""

    __slots__ = ("_calls", "_empty_turn", "_failed", "_model", "_results", "_task", "_tools", "_truth", "_turn")

    def __init__(
        self,
        task: TaskDefinition,
        tools: Callable[[str], Sequence[Tool]],
        empty_turn: EmptyTurn = EmptyTurn.PASSES,
    ) -> None:
        """tools: the tools of a class by its name. Raises TaskSourceError or EnvironmentFault for a broken task."""
        classes = tuple(simulator_class(name) for name in task.classes)
        long_context = task.category == Category.LONG_CONTEXT
        self._task = task
        self._tools = tools
        self._empty_turn = empty_turn
        self._model = Simulators(classes, task.initial_state, long_context)
        self._truth = Simulators(classes, task.initial_state, long_context)
        self._results: list[str] = []
        self._turn = 0
        self._calls = 0
        self._failed = False

    def tools(self) -> Sequence[Tool]:
        """The documented tools of the task's classes, less those withheld in this turn."""
        withheld = self._task.turns[self._turn].withheld if self._turn < self._task.turns_total else ()
        return [tool for name in self._task.classes for tool in self._tools(name) if tool.name not in withheld]

    def call(self, text: str) -> CallResult:
        """Runs one call of the model. A withheld tool runs too, as under the package's checker."""
        self._calls += 1
        if self._turn >= self._task.turns_total or self._calls > CALLS_PER_TURN:
            return CallResult("Error during execution: no call is taken any more", ok=False)
        result, ok = _run(self._model, text, "model")
        self._results.append(result)
        return CallResult(result[:RESULT_CHARACTERS], ok)

    def judge(self) -> bool:
        """The verdict on the current turn. Raises EnvironmentFault when every turn has been judged."""
        if self._turn >= self._task.turns_total:
            raise EnvironmentFault(f"all turns of {self._task.task} have been judged")
        passed = not self._failed and self._passes(self._task.turns[self._turn].ground_truth)
        self._failed = not passed
        self._turn += 1
        self._calls = 0
        return passed

    def _passes(self, ground_truth: tuple[str, ...]) -> bool:
        if not ground_truth:
            return self._empty_turn is EmptyTurn.PASSES or not self._calls
        if not self._calls:
            return False
        required = [_run(self._truth, text, "ground_truth")[0] for text in ground_truth]
        return responses_match(self._results, required) and states_match(self._model.objects, self._truth.objects)


def _run(simulators: Simulators, text: str, side: str) -> tuple[str, bool]:
    try:
        call = parse_call(_as_evaluated(simulators, text, side))
    except CallError as error:
        return f"Error during execution: {error}", False
    return simulators.run(call)


def _as_evaluated(simulators: Simulators, text: str, side: str) -> str:
    """The text as the package evaluates it, which reaches into string arguments too.

    It drops the space between a word and a parenthesis everywhere, and puts an object's name, different for the two
    sides, before a word that names a method. Verdicts agree only where the same happens here.
    """
    if text.count("(") < 2 or len(text) > DEFAULT_LIMITS.text:
        return text
    head, parenthesis, rest = text.partition("(")

    def named(match: re.Match[str]) -> str:
        word = match.group(1)
        return f"{side}.{word}" if simulators.method(word) else word

    return head + parenthesis + _FUNCTION_NAME.sub(named, rest)
