"""Executes a plan in a fresh simulator before any text exists; a backend's patches repair its initial state.

A patch changes one value of the initial state by dotted path, and the plan then runs again from the start.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from producers.environments.port import TaskSource
from producers.synthesis.errors import StageError
from producers.synthesis.plan import Plan, resolve
from producers.synthesis.profile import parsed
from schemas.rules import canonical_json
from schemas.task import TaskDefinition, Turn

_DOT = re.compile(r"(?<!\\)\.")


@dataclass(frozen=True, slots=True)
class Patch:
    """path: dotted, from the class name down, such as ``TradingBot.market_status``. value: canonical JSON."""

    path: str
    value: str

    def text(self) -> str:
        """As events record it."""
        return f"{self.path}={self.value}"


@dataclass(frozen=True, slots=True)
class Execution:
    """A plan that ran without an error. calls and results in source form, turn by turn; patches in order."""

    plan: Plan
    calls: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]
    patches: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True)
class _Failure:
    step: int
    call: str
    result: str


Patcher = Callable[[Plan, int, str, str], Patch | None]


def execute(plan: Plan, source: TaskSource, patcher: Patcher, attempts: int) -> Execution:
    """Runs the plan, patching after each error. attempts: runs in all. Raises StageError naming the function to blame.

    A patch that changes nothing, or none at all, ends it early.
    """
    patches: list[Patch] = []
    reason = StageError("no run was allowed")
    for _ in range(attempts):
        outcome = _run(plan, source)
        if isinstance(outcome, Execution):
            return replace(outcome, patches=tuple(patches))
        function = plan.steps[outcome.step].function
        patch = patcher(plan, outcome.step, outcome.call, outcome.result)
        patched = plan if patch is None else replace(plan, initial_state=apply(plan.initial_state, patch))
        if patch is None or patched == plan:
            raise StageError(f"{function} fails: {outcome.result[:120]}", (function,))
        plan = patched
        patches.append(patch)
        reason = StageError(f"{function} still fails after {len(patches)} patches: {outcome.result[:120]}", (function,))
    raise reason


def apply(initial_state: str, patch: Patch) -> str:
    """The state with the patch applied. Missing objects on the way are created; a dot in a key is written ``\\.``."""
    state = json.loads(initial_state)
    at: Any = state
    *way, last = [key.replace("\\.", ".") for key in _DOT.split(patch.path)]
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    at[int(last) if isinstance(at, list) else last] = json.loads(patch.value)
    return compact(state)


def compact(state: object) -> str:
    """State as JSON without white space, in the order of its keys, which simulators list things in."""
    return json.dumps(state, separators=(",", ":"), allow_nan=False)


def patch_of(value: object, *keys: str) -> Patch:
    """A patch that sets the JSON value under these keys."""
    return Patch(".".join(key.replace(".", "\\.") for key in keys), canonical_json(value))


def definition_of(plan: Plan, turns: Sequence[Turn]) -> TaskDefinition:
    """A provisional task in the plan's world, to run calls in."""
    return TaskDefinition("plan", plan.source, plan.category, "plan", plan.classes, plan.initial_state, tuple(turns))


def _run(plan: Plan, source: TaskSource) -> Execution | _Failure:
    environment = source.reset(definition_of(plan, [Turn((), ())]))
    values: list[object] = []
    calls: list[tuple[str, ...]] = []
    results: list[tuple[str, ...]] = []
    for turn in plan.turns:
        made: list[str] = []
        seen: list[str] = []
        for step in turn:
            text = resolve(step, values).text()
            result = environment.call(text)
            value = parsed(result.text)
            if not result.ok or _refused(value):
                return _Failure(len(values), text, result.text)
            values.append(value)
            made.append(text)
            seen.append(result.text)
        calls.append(tuple(made))
        results.append(tuple(seen))
    return Execution(plan, tuple(calls), tuple(results))


def _refused(value: object) -> bool:
    """Whether a simulator said no in a well-formed result."""
    if isinstance(value, list):
        return any(_refused(item) for item in value[:1])
    if isinstance(value, dict):
        flags = [value.get(key) for key in _VERDICTS]
        return "error" in value or any(flag is False for flag in flags)
    return isinstance(value, str) and value[:6].lower() == "error"


_VERDICTS = (
    "success", "sent_status", "added_status", "deleted_status", "authentication_status", "follow_status",
    "unfollow_status", "cancel_status", "booking_status", "insurance_status", "verification_status",
)  # fmt: skip
