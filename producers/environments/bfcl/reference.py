"""The package's own checker, for comparison only: it evaluates text, so it is given no text of a model.

Each case runs under a name of its own, because the checker keeps its simulators in module globals under that name;
`forget` removes them again.
"""

import importlib
import json
import re
from collections.abc import Sequence
from typing import Any

from schemas.task import Category, TaskDefinition

_CHECKER = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
_KEPT = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"


class ReferenceChecker:
    """Calls `multi_turn_checker` and reads which turn failed."""

    def __init__(self) -> None:
        self._check = importlib.import_module(_CHECKER).multi_turn_checker
        self._kept = vars(importlib.import_module(_KEPT))
        self._own = frozenset(self._kept)

    def entry(self, task: TaskDefinition) -> dict[str, Any]:
        """The task as the package's record. The package sees a long context by the id, so a variant's id says so."""
        number = task.scenario if task.scenario.isdigit() else "0"
        long_context = task.category == Category.LONG_CONTEXT
        known = task.parent is None and task.source == "bfcl"
        kind = "long_context" if long_context else "base"
        return {
            "id": task.task if known else f"multi_turn_{kind}_{number}",
            "initial_config": json.loads(task.initial_state),
            "involved_classes": list(task.classes),
        }

    def verdict(
        self, entry: dict[str, Any], truth: Sequence[Sequence[str]], turns: Sequence[Sequence[str]], name: str
    ) -> dict[str, Any]:
        """The checker's own answer. name: unique among the cases not yet forgotten."""
        responses = [[list(calls)] if calls else [] for calls in turns]
        answer: dict[str, Any] = self._check(responses, [list(calls) for calls in truth], entry, "", name)
        return answer

    def forget(self) -> None:
        """Drops the simulators of all cases so far, so that thousands of cases fit in memory."""
        for name in [name for name in self._kept if name not in self._own]:
            del self._kept[name]


def failed_turn(answer: dict[str, Any]) -> int | None:
    """The turn a checker's answer names, 0-based, or None where it is valid."""
    if answer["valid"]:
        return None
    if "execution_result" in answer:
        return len(answer["execution_result"]) - 1
    numbers = re.findall(r"turn (\d+)", answer["error_message"])
    return int(numbers[-1])
