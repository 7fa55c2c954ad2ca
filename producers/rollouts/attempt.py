"""One attempt at a task: the state machine between a policy's messages and an environment.

    start turn ──▶ prompt ──▶ accept(completion) ── calls ──▶ run them, results ──▶ prompt
                                   └── no call ──▶ judge ──▶ next turn, or the end at the first failed turn

A mistake of the policy (a failed call, a limit reached) is an outcome. A fault of the infrastructure is a failed slot
with a reason and no reward: None is not zero. Nothing here reads a clock or draws at random; both come from the caller.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from producers.environments.port import CallResult, Environment, TaskSource, Tool
from producers.rollouts.policy import Completion, Prompt
from schemas.conversation import Message, Role
from schemas.rollouts import FailureReason
from schemas.task import TaskDefinition

Clock: TypeAlias = Callable[[], float]
NOT_RUN = "not run: too many calls"


def attempt_seed(run_seed: int, group: str, attempt: int) -> int:
    """63 bits that all randomness of an attempt follows from, whoever runs it and beside whom."""
    digest = hashlib.sha256(f"{run_seed}\x1f{group}\x1f{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def announcement(task: TaskDefinition, turn: int) -> str:
    """What the TOOLS message at the start of a turn says: names newly withheld or on offer again; empty if none.

    Full schemas travel in `Prompt.tools`; a policy with a small context reads this alone.
    """
    now = task.turns[turn].withheld
    before = task.turns[turn - 1].withheld if turn else ()
    gone = [name for name in now if name not in before]
    back = [name for name in before if name not in now]
    parts = [" ".join([word, *names]) for word, names in (("without", gone), ("with", back)) if names]
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one attempt. messages and calls: per turn; a turn that reaches one has failed. tokens: of the whole
    conversation, likewise. characters: of all messages; beyond it, or after `seconds`, the slot is failed."""

    messages: int = 8
    calls: int = 20
    tokens: int = 16_384
    characters: int = 4_000_000
    seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """What an attempt came to.

    failure: why the slot has no reward, or None. outcomes: one per turn judged; turns never reached count as failed.
    tokens: sampled. latency_ms: from start to end, waiting for the batch included. policy_version: at the first
    message; -1 if there was none. token_ids, logprobs (0.0 where not sampled), loss_mask (1: sampled): equal lengths.
    """

    attempt: int
    turns_passed: int
    turns_total: int
    outcomes: tuple[bool, ...]
    tool_calls: int
    tokens: int
    latency_ms: float
    policy_version: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    loss_mask: bytes
    messages: tuple[Message, ...]
    failure: FailureReason | None = None
    detail: str = ""

    @property
    def progress(self) -> float | None:
        """turns_passed / turns_total for display; None for a failed slot. Folds use the integers."""
        return None if self.failure else self.turns_passed / self.turns_total


class AttemptFailure(Exception):  # noqa: N818 - a failed slot, raised to its one owner
    """Ends the attempt as a failed slot."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Attempt:
    """A live attempt. `start`, then `prompt` and `accept` in turn until `done`; then `result`. Never raises for faults
    of source, environment or checker: it ends as a failed slot."""

    def __init__(
        self, key: str, number: int, task: TaskDefinition, seed: int, temperature: float, limits: Limits
    ) -> None:
        self.key = key
        self.number = number
        self.task = task
        self.done = False
        self._seed = seed
        self._temperature = temperature
        self._limits = limits
        self._environment: Environment | None = None
        self._tools: Sequence[Tool] = ()
        self._messages: list[Message] = []
        self._turn = 0
        self._sent = 0
        self._calls = 0
        self._tool_calls = 0
        self._characters = 0
        self._outcomes: list[bool] = []
        self._token_ids: tuple[int, ...] = ()
        self._logprobs: tuple[float, ...] = ()
        self._loss_mask = b""
        self._version = -1
        self._started = 0.0
        self._ended = 0.0
        self._failure: FailureReason | None = None
        self._detail = ""

    def start(self, source: TaskSource, now: float) -> None:
        """Resets the environment and opens the first turn. now: seconds of the caller's clock, as everywhere below."""
        self._started = self._ended = now
        try:
            self._environment = source.reset(self.task)
            self._open_turn()
        except Exception as error:  # noqa: BLE001 - whatever a simulator raises is a failed slot, not a crash
            self.fail(FailureReason.ENVIRONMENT, error, now)

    def prompt(self) -> Prompt:
        """What the policy must answer next. Its messages are the live list: valid until the next `accept`."""
        return Prompt(
            attempt=self.key,
            task=self.task,
            turn=self._turn,
            message=self._sent,
            messages=self._messages,
            tools=self._tools,
            seed=self._seed,
            temperature=self._temperature,
            token_ids=self._token_ids,
        )

    def accept(self, completion: Completion, version: int, now: float) -> None:
        """Takes the policy's message: runs its calls, or closes the turn when it has none."""
        try:
            self._take(completion, version)
            if now - self._started > self._limits.seconds:
                raise AttemptFailure(FailureReason.TIMEOUT, f"longer than {self._limits.seconds} s")
            self._answer(completion)
        except AttemptFailure as failure:
            self.fail(failure.reason, failure, now)
        except Exception as error:  # noqa: BLE001 - whatever a simulator raises is a failed slot, not a crash
            self.fail(FailureReason.ENVIRONMENT, error, now)
        if self.done:
            self._ended = now
            self._environment = None

    def fail(self, reason: FailureReason, error: Exception, now: float) -> None:
        """Ends the attempt as a failed slot."""
        self._failure = reason
        self._detail = f"{type(error).__name__}: {error}"[:500]
        self._ended = now
        self._environment = None
        self.done = True

    def result(self) -> AttemptResult:
        """What the attempt came to, once it is done."""
        assert self.done, "an attempt has a result once it is done"
        return AttemptResult(
            attempt=self.number,
            turns_passed=0 if self._failure else sum(self._outcomes),
            turns_total=self.task.turns_total,
            outcomes=tuple(self._outcomes),
            tool_calls=self._tool_calls,
            tokens=sum(self._loss_mask),
            latency_ms=(self._ended - self._started) * 1000.0,
            policy_version=self._version,
            token_ids=self._token_ids,
            logprobs=self._logprobs,
            loss_mask=self._loss_mask,
            messages=tuple(self._messages),
            failure=self._failure,
            detail=self._detail,
        )

    def _take(self, completion: Completion, version: int) -> None:
        sampled, context = completion.sampled_ids, completion.context_ids
        if len(completion.logprobs) != len(sampled):
            raise AttemptFailure(FailureReason.POLICY, "as many log-probabilities as sampled tokens are needed")
        self._version = version if self._version < 0 else min(self._version, version)
        self._token_ids += context + sampled
        self._logprobs += (0.0,) * len(context) + completion.logprobs
        self._loss_mask += b"\x00" * len(context) + b"\x01" * len(sampled)
        self._say(Message(Role.ASSISTANT, completion.text, completion.calls))
        self._sent += 1

    def _answer(self, completion: Completion) -> None:
        if len(self._token_ids) > self._limits.tokens:
            self._close(passed=False)
        elif not completion.calls:
            self._close(self._judge())
        else:
            results = [self._run(text) for text in completion.calls]
            self._say(Message(Role.TOOL, "\n".join(result.text for result in results)))
            if self._calls > self._limits.calls or self._sent >= self._limits.messages:
                self._close(passed=False)

    def _run(self, text: str) -> CallResult:
        assert self._environment is not None, "a live attempt has an environment"
        self._calls += 1
        self._tool_calls += 1
        if self._calls > self._limits.calls:
            return CallResult(NOT_RUN, ok=False)
        return self._environment.call(text)

    def _judge(self) -> bool:
        assert self._environment is not None, "a live attempt has an environment"
        try:
            return self._environment.judge()
        except Exception as error:
            raise AttemptFailure(FailureReason.CHECKER, f"{type(error).__name__}: {error}") from error

    def _close(self, passed: bool) -> None:
        self._outcomes.append(passed)
        self._turn += 1
        self._sent = self._calls = 0
        if passed and self._turn < self.task.turns_total:
            self._open_turn()
        else:
            self.done = True

    def _open_turn(self) -> None:
        assert self._environment is not None, "a live attempt has an environment"
        self._tools = self._environment.tools()
        said = announcement(self.task, self._turn)
        if said:
            self._say(Message(Role.TOOLS, said))
        for request in self.task.turns[self._turn].requests:
            self._say(Message(Role.USER, request))

    def _say(self, message: Message) -> None:
        self._messages.append(message)
        self._characters += len(message.content) + sum(map(len, message.calls))
        if self._characters > self._limits.characters:
            raise AttemptFailure(FailureReason.TOO_LARGE, f"more than {self._limits.characters} characters")
