"""One attempt at a BFCL task, judged as the package's checker judges it.

The model's calls and the ground truth's act on two sets of simulators that belong to this attempt. A turn with calls
in its ground truth fails when nothing was called, when the states differ, or when a result of the ground truth was not
seen often enough; a turn without any always passes, unless `EmptyTurn.NO_CALLS` asks for silence.

Simulators are deterministic, so as long as the model's calls are word for word the ground truth's, the two sides are
the same: the second side is built, and brought to where the first stands, at the first turn that differs.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import takewhile

from producers.environments.bfcl.package import simulator_class
from producers.environments.bfcl.simulators import Simulators
from producers.environments.calls import DEFAULT_LIMITS, Call, parse_call
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

    __slots__ = (
        "_agreed",
        "_called",
        "_classes",
        "_count",
        "_empty_turn",
        "_failed",
        "_model",
        "_results",
        "_task",
        "_tools",
        "_truth",
        "_turn",
    )

    def __init__(
        self,
        task: TaskDefinition,
        tools: Callable[[str], Sequence[Tool]],
        empty_turn: EmptyTurn = EmptyTurn.PASSES,
    ) -> None:
        """tools: the tools of a class by its name. Raises TaskSourceError or EnvironmentFault for a broken task."""
        self._task = task
        self._tools = tools
        self._empty_turn = empty_turn
        self._classes = tuple([simulator_class(name) for name in task.classes])
        self._model = self._fresh()
        self._truth: Simulators | None = None
        self._agreed: list[Call] = []
        self._called: list[tuple[str, Call | None]] = []
        self._results: list[str] = []
        self._count = 0
        self._turn = 0
        self._failed = False

    def tools(self) -> Sequence[Tool]:
        """The documented tools of the task's classes, less those withheld in this turn."""
        withheld = self._task.turns[self._turn].withheld if self._turn < self._task.turns_total else ()
        return [tool for name in self._task.classes for tool in self._tools(name) if tool.name not in withheld]

    def call(self, text: str) -> CallResult:
        """Runs one call of the model. A withheld tool runs too, as under the package's checker."""
        self._count += 1
        if self._turn >= self._task.turns_total or self._count > CALLS_PER_TURN:
            return CallResult("Error during execution: no call is taken any more", ok=False)
        evaluated = _as_evaluated(self._model, text, "model")
        call, error = _parsed(evaluated)
        result, ok = (error, False) if call is None else self._model.run(call)
        self._called.append((evaluated, call))
        self._results.append(result)
        return CallResult(result[:RESULT_CHARACTERS], ok)

    def judge(self) -> bool:
        """The verdict on the current turn. Raises EnvironmentFault when every turn has been judged."""
        if self._turn >= self._task.turns_total:
            raise EnvironmentFault(f"all turns of {self._task.task} have been judged")
        passed = not self._failed and self._passes(self._task.turns[self._turn].ground_truth)
        self._failed = not passed
        self._turn += 1
        self._count = 0
        self._called = []
        return passed

    def _passes(self, ground_truth: tuple[str, ...]) -> bool:
        if not ground_truth:
            if self._called:
                self._second_side()
            return self._empty_turn is EmptyTurn.PASSES or not self._count
        if not self._count:
            return False
        evaluated = [_as_evaluated(self._model, text, "ground_truth") for text in ground_truth]
        same = self._same_so_far(evaluated) if self._truth is None else 0
        if same == len(evaluated) == len(self._called):
            self._agreed += [call for _, call in self._called if call is not None]
            return True
        truth = self._second_side()
        return responses_match(self._results, self._required(truth, evaluated, same)) and states_match(
            self._model.objects, truth.objects
        )

    def _same_so_far(self, evaluated: list[str]) -> int:
        """How many calls of this turn, from its start, are word for word the ground truth's."""
        pairs = zip(evaluated, self._called, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1][0], pairs))

    def _required(self, truth: Simulators, evaluated: list[str], same: int) -> Iterator[str]:
        """The ground truth's results of this turn, each computed when asked for; the first `same` are the model's."""
        truth.replay(call for _, call in self._called[:same] if call is not None)
        first = len(self._results) - len(self._called)
        yield from self._results[first : first + same]
        known = dict(self._called)
        for text in evaluated[same:]:
            yield _answer(truth, text, known.get(text))

    def _second_side(self) -> Simulators:
        """The ground truth's simulators at the start of this turn."""
        if self._truth is None:
            self._truth = self._fresh()
            self._truth.replay(self._agreed)
        return self._truth

    def _fresh(self) -> Simulators:
        return Simulators(self._classes, self._task.initial_state, self._task.category == Category.LONG_CONTEXT)


def _parsed(text: str) -> tuple[Call | None, str]:
    try:
        return parse_call(text), ""
    except CallError as error:
        return None, f"Error during execution: {error}"


def _answer(simulators: Simulators, text: str, call: Call | None) -> str:
    if call is None:
        call, error = _parsed(text)
        if call is None:
            return error
    return simulators.run(call)[0]


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
