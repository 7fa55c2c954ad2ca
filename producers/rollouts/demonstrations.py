"""Demonstrations for the warm start: the ground truth of workbench tasks, played in the real environment.

A teacher answers in the policy's place, so that a demonstration has the very form of an attempt: the same messages, ids
and mask, and results that the simulators gave. To keep a small model from learning the tasks by heart, each is
renamed consistently before it is played: every name becomes another of its closed list, hours stay hours and amounts
amounts. A renaming under which the task's own results would not follow (sums do not survive it) is drawn again.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from producers.environments.workbench.entities import AMOUNTS, HOURS, NAMES
from producers.environments.workbench.source import WorkbenchSource
from producers.environments.workbench.tools import TOOLS
from producers.environments.workbench.world import World
from producers.rollouts.attempt import AttemptResult
from producers.rollouts.group import GroupSpec, run_groups
from producers.rollouts.policy import Completion, Prompt
from producers.rollouts.tokenizer import WordTokenizer
from schemas.conversation import Message, Role
from schemas.rules import canonical_json
from schemas.task import TaskDefinition, Turn

RENAMINGS = 4
"""Renamings with numbers that are tried before numbers are left as they are."""
_NAME_OR_NUMBER = re.compile(r"'([^'\s]*)'|\b(\d+)\b")


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One attempt that passes every turn. loss_mask: 1 for what the policy is to say, end tokens included."""

    token_ids: tuple[int, ...]
    loss_mask: bytes


class Teacher:
    """The policy port over the ground truth. A message ends after a look-up whose result later calls may need."""

    def __init__(self, tokenizer: WordTokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def version(self) -> int:
        return 0

    def load(self, version: int, location: str, sha256: str) -> None:
        """A teacher has no weights."""

    def complete(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        return [self._message(prompt) for prompt in prompts]

    def finish(self, attempts: Sequence[str]) -> None:
        """Keeps nothing."""

    def _message(self, prompt: Prompt) -> Completion:
        parts = messages_of(prompt.task.turns[prompt.turn])
        calls = parts[prompt.message] if prompt.message < len(parts) else ()
        context = tuple(self._tokenizer.context(prompt.messages, prompt.token_ids))
        said = tuple(self._tokenizer.render([Message(Role.ASSISTANT, "", calls)])[1:])
        return Completion(" ".join(calls), calls, context, said, (0.0,) * len(said))


def messages_of(turn: Turn) -> tuple[tuple[str, ...], ...]:
    """A turn's calls as the messages that make them."""
    messages: list[tuple[str, ...]] = []
    current: list[str] = []
    for text in turn.ground_truth:
        current.append(text)
        if TOOLS[text.partition("(")[0]].looks_up:
            messages.append(tuple(current))
            current = []
    return (*messages, tuple(current)) if current else tuple(messages)


def demonstrations(
    source: WorkbenchSource, tasks: Sequence[TaskDefinition], tokenizer: WordTokenizer, seed: int
) -> Iterator[Demonstration]:
    """Endless: passes over the tasks in random order, each task renamed anew. Follows from the seed."""
    rng = Random(seed)
    teacher = Teacher(tokenizer)
    while True:
        for task in rng.sample(tasks, len(tasks)):
            result = play(source, teacher, renamed(task, rng))
            yield Demonstration(result.token_ids, result.loss_mask)


def play(source: WorkbenchSource, teacher: Teacher, task: TaskDefinition) -> AttemptResult:
    """The teacher's attempt at a task. Raises ValueError for a task whose ground truth does not pass."""
    (outcome,) = run_groups(teacher, source, [GroupSpec(task.task, task, 1, 0)])
    (result,) = outcome.attempts
    if result.turns_passed != task.turns_total:
        raise ValueError(
            f"the ground truth of task {task.task} passes {result.turns_passed} of {task.turns_total} turns"
        )
    return result


def renamed(task: TaskDefinition, rng: Random) -> TaskDefinition:
    """The task under a random renaming of names and, where its results allow it, of numbers."""
    expected = results(task)
    for _ in range(RENAMINGS):
        renaming = {**_draw_names(rng), **_draw_numbers(rng)}
        candidate = rename(task, renaming)
        if results(candidate) == tuple(_in_text(text, renaming) for text in expected):
            return candidate
    return rename(task, _draw_names(rng))


def results(task: TaskDefinition) -> tuple[str, ...]:
    """What the ground truth's calls return, in order."""
    world = World.parse(task.classes, task.initial_state)
    return tuple(world.run_text(text).text for turn in task.turns for text in turn.ground_truth)


def rename(task: TaskDefinition, renaming: Mapping[str, str]) -> TaskDefinition:
    """The task with every quoted name and every number replaced, in its state, requests and calls alike."""
    turns = tuple(
        replace(
            turn,
            requests=tuple(_in_text(text, renaming) for text in turn.requests),
            ground_truth=tuple(_in_text(text, renaming) for text in turn.ground_truth),
        )
        for turn in task.turns
    )
    return replace(task, initial_state=canonical_json(_in_state(json.loads(task.initial_state), renaming)), turns=turns)


def _in_text(text: str, renaming: Mapping[str, str]) -> str:
    return _NAME_OR_NUMBER.sub(
        lambda match: f"'{renaming.get(match[1], match[1])}'" if match[2] is None else renaming.get(match[2], match[2]),
        text,
    )


def _in_state(value: Any, renaming: Mapping[str, str]) -> Any:
    """A simulator's state renamed; lists, which are of guests, stay sorted."""
    if isinstance(value, dict):
        return {renaming.get(key, key): _in_state(item, renaming) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(_in_state(item, renaming) for item in value)
    if isinstance(value, int):
        return int(renaming.get(str(value), str(value)))
    return renaming.get(value, value)


def _draw_names(rng: Random) -> dict[str, str]:
    """Each closed list permuted."""
    return {
        name: other
        for names in NAMES.values()
        for name, other in zip(names, rng.sample(names, len(names)), strict=True)
    }


def _draw_numbers(rng: Random) -> dict[str, str]:
    """Hours permuted among hours, the other amounts among themselves; zero stays."""
    others = [amount for amount in AMOUNTS if amount and amount not in HOURS]
    return {
        str(number): str(other)
        for numbers in (HOURS, others)
        for number, other in zip(numbers, rng.sample(numbers, len(numbers)), strict=True)
    }
