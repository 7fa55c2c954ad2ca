"""The policy port: what turns a conversation so far into the next assistant message.

A policy answers a whole batch at once; attempts of several groups share it. What it samples for an attempt depends on
the attempt's context and its `seed` alone where the policy is deterministic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from producers.environments.port import Tool
from schemas.conversation import Message
from schemas.task import TaskDefinition


@dataclass(frozen=True, slots=True)
class Prompt:
    """One attempt that waits for its next assistant message.

    attempt: a key unique among the attempts alive in this process. turn: 0-based turn of the task. message: 0-based
    assistant message within the turn. messages: the conversation so far. seed: 63 bits, a hash of (run seed, group,
    attempt). token_ids: the ids of this attempt so far as the last completion returned them (empty at the start).
    """

    attempt: str
    task: TaskDefinition
    turn: int
    message: int
    messages: Sequence[Message]
    tools: Sequence[Tool]
    seed: int
    temperature: float
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """One assistant message.

    calls: call texts in source form, unparsed and untrusted; none ends the turn. context_ids: ids appended for the
    messages the policy had not yet seen; sampled_ids: ids it sampled, with one log-probability (natural log, at the
    sampling temperature) each. All three are empty for a policy without tokens. truncated: the token limit ended it.
    """

    text: str
    calls: tuple[str, ...]
    context_ids: tuple[int, ...] = ()
    sampled_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    truncated: bool = False


class Policy(Protocol):
    """`load` makes a published version current; `complete` answers a batch in order with the version it is at."""

    @property
    def version(self) -> int: ...

    def load(self, version: int, location: str, sha256: str) -> None: ...

    def complete(self, prompts: Sequence[Prompt]) -> Sequence[Completion]: ...

    def finish(self, attempts: Sequence[str]) -> None:
        """Frees what is kept for attempts that ended."""
        ...
