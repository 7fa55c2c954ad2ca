"""A policy without a model: plays the ground truth, with mistakes that become rarer as its version grows.

Each task has a difficulty, uniform by the hash of its id; a turn is played right with probability
sigmoid(base - spread * difficulty + growth * version), decided by a hash of the attempt's seed and the turn. So answers
follow from (seed, task, version) alone: no global randomness, no memory, the same in any batch and any worker.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from producers.environments.calls import Call, Value, parse_call
from producers.environments.errors import CallError
from producers.rollouts.policy import Completion, Prompt


@dataclass(frozen=True, slots=True)
class Skill:
    """How good the player is. base: log-odds of a right turn of the easiest task at version 0. spread: how much the
    hardest task takes from it. growth: what each version adds, up to `versions`."""

    base: float = 4.0
    spread: float = 10.0
    growth: float = 0.8
    versions: int = 6

    def right(self, difficulty: float, version: int) -> float:
        """The probability that a turn of a task of this difficulty (0 to 1) is played right."""
        odds = self.base - self.spread * difficulty + self.growth * min(version, self.versions)
        return 1.0 / (1.0 + math.exp(-odds)) if odds > -700 else 0.0


PERFECT = Skill(base=math.inf, spread=0.0, growth=0.0)
_END = Completion("", ())


class ScriptedPolicy:
    """Plays `prompt.task`'s ground truth: all calls of a turn in one message, or (`per_call`) one call a message."""

    def __init__(self, skill: Skill | None = None, per_call: bool = False, version: int = 0) -> None:
        self._skill = skill or Skill()
        self._per_call = per_call
        self._version = version

    @property
    def version(self) -> int:
        return self._version

    def load(self, version: int, location: str, sha256: str) -> None:  # noqa: ARG002 - the port's signature
        """Takes the skill of a version; there are no weights to read."""
        self._version = version

    def complete(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        return [self._message(prompt) for prompt in prompts]

    def finish(self, attempts: Sequence[str]) -> None:
        """Keeps nothing."""

    def _message(self, prompt: Prompt) -> Completion:
        if prompt.message and not self._per_call:
            return _END
        calls = self._turn(prompt)
        if self._per_call:
            calls = calls[prompt.message : prompt.message + 1]
        return Completion("", calls) if calls else _END

    def _turn(self, prompt: Prompt) -> tuple[str, ...]:
        truth = prompt.task.turns[prompt.turn].ground_truth
        right = self._skill.right(_share(prompt.task.task), self._version)
        if right >= 1.0 or _share(f"{prompt.seed}\x1f{prompt.turn}") < right:
            return truth
        return _mistaken(truth, prompt)


def _mistaken(truth: tuple[str, ...], prompt: Prompt) -> tuple[str, ...]:
    rng = Random(_hash(f"mistake\x1f{prompt.seed}\x1f{prompt.turn}"))
    if not truth:
        return (f"{_tool(prompt, rng, '')}()",)
    index = rng.randrange(len(truth))
    changed = _dropped if rng.random() < 0.4 else _altered if rng.random() < 0.5 else _renamed
    return (*truth[:index], *changed(truth[index], prompt, rng), *truth[index + 1 :])


def _dropped(text: str, prompt: Prompt, rng: Random) -> tuple[str, ...]:  # noqa: ARG001 - one shape for all mistakes
    return ()


def _altered(text: str, prompt: Prompt, rng: Random) -> tuple[str, ...]:
    call = _parsed(text)
    size = len(call.args) + len(call.kwargs) if call else 0
    if call is None or size == 0:
        return _dropped(text, prompt, rng)
    chosen = rng.randrange(size)
    args = tuple(_other(value) if place == chosen else value for place, value in enumerate(call.args))
    kwargs = tuple(
        (name, _other(value) if place == chosen else value)
        for place, (name, value) in enumerate(call.kwargs, start=len(args))
    )
    return (Call(call.name, args, kwargs).text(),)


def _renamed(text: str, prompt: Prompt, rng: Random) -> tuple[str, ...]:
    call = _parsed(text)
    if call is None:
        return _dropped(text, prompt, rng)
    return (replace(call, name=_tool(prompt, rng, call.name)).text(),)


def _tool(prompt: Prompt, rng: Random, other_than: str) -> str:
    names = sorted({tool.name for tool in prompt.tools} - {other_than})
    return rng.choice(names) if names else "nothing"


def _other(value: Value) -> Value:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else None


def _parsed(text: str) -> Call | None:
    try:
        return parse_call(text)
    except CallError:
        return None


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _share(text: str) -> float:
    """Uniform in [0, 1), by hash."""
    return _hash(text) / 2.0**64
