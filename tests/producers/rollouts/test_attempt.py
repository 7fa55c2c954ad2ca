"""An attempt ends at its first failed turn; limits fail turns, faults fail slots."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from producers.environments.port import CallResult, Tool
from producers.rollouts.attempt import Attempt, AttemptResult, Limits, announcement, attempt_seed
from producers.rollouts.policy import Completion
from schemas.conversation import Message, Role
from schemas.rollouts import FailureReason
from schemas.task import TaskDefinition, Turn

END = Completion("", ())
CALL = Completion("thinking", ("f()",))


@dataclass
class _World:
    """Passes a turn when it saw as many calls as its ground truth has; raises where told to."""

    turns: Sequence[Turn]
    breaks: str = ""
    made: int = 0
    turn: int = 0
    ran: list[str] = field(default_factory=list)

    def tools(self) -> Sequence[Tool]:
        return ()

    def call(self, text: str) -> CallResult:
        if self.breaks == "call":
            raise ZeroDivisionError("simulator")
        self.made += 1
        self.ran.append(text)
        return CallResult(f"result of {text}", ok=True)

    def judge(self) -> bool:
        if self.breaks == "judge":
            raise ZeroDivisionError("checker")
        passed = self.made == len(self.turns[self.turn].ground_truth)
        self.turn, self.made = self.turn + 1, 0
        return passed


@dataclass
class _Source:
    breaks: str = ""
    worlds: list[_World] = field(default_factory=list)
    name: str = "fake"

    def tasks(self, split: str) -> Sequence[TaskDefinition]:  # noqa: ARG002 - the port names it
        return ()

    def reset(self, task: TaskDefinition) -> _World:
        if self.breaks == "reset":
            raise ZeroDivisionError("reset")
        self.worlds.append(_World(task.turns, self.breaks))
        return self.worlds[-1]


def _task(turns: int = 3) -> TaskDefinition:
    return TaskDefinition("t", "fake", "base", "s", (), "{}", (Turn(("ask",), ("f()",)),) * turns)


def _play(
    *completions: Completion, breaks: str = "", limits: Limits | None = None, second: float = 0.5
) -> AttemptResult:
    attempt = Attempt("g/0", 0, _task(), 7, 1.0, limits or Limits())
    attempt.start(_Source(breaks), 10.0)
    now = 10.0
    for completion in completions:
        assert not attempt.done
        now += second
        attempt.accept(completion, 4, now)
    if not attempt.done:
        attempt.fail(FailureReason.POLICY, ValueError("the script ended"), now)
    return attempt.result()


def test_all_turns_passed_is_full_progress_with_messages_in_order() -> None:
    result = _play(CALL, END, CALL, END, CALL, END)
    assert (result.turns_passed, result.turns_total, result.progress) == (3, 3, 1.0)
    assert result.tool_calls == 3 and result.policy_version == 4
    assert [message.role for message in result.messages[:4]] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert result.messages[2] == Message(Role.TOOL, "result of f()")


def test_an_attempt_ends_at_its_first_failed_turn_and_the_rest_counts_as_failed() -> None:
    result = _play(CALL, END, END)
    assert result.outcomes == (True, False)
    assert (result.turns_passed, result.turns_total, result.failure) == (1, 3, None)


def test_latency_comes_from_the_clock_that_is_given() -> None:
    assert _play(END).latency_ms == 500.0


def test_a_turn_that_reaches_the_message_or_call_limit_has_failed() -> None:
    endless = _play(CALL, CALL, limits=Limits(messages=2))
    assert endless.outcomes == (False,) and endless.failure is None
    many = _play(Completion("", ("f()",) * 50), limits=Limits(calls=3))
    assert many.outcomes == (False,) and many.failure is None and many.tool_calls == 50
    assert "not run" in many.messages[-1].content


def test_calls_beyond_the_limit_never_reach_the_environment() -> None:
    source = _Source()
    attempt = Attempt("g/0", 0, _task(), 7, 1.0, Limits(calls=3))
    attempt.start(source, 0.0)
    attempt.accept(Completion("", ("f()",) * 1000), 0, 0.0)
    assert len(source.worlds[0].ran) == 3


def test_too_many_tokens_fail_the_turn() -> None:
    long = Completion("", ("f()",), (1,) * 5, (2,) * 5, (-0.1,) * 5)
    assert _play(long, limits=Limits(tokens=9)).outcomes == (False,)


@pytest.mark.parametrize(
    ("breaks", "reason"),
    [
        ("reset", FailureReason.ENVIRONMENT),
        ("call", FailureReason.ENVIRONMENT),
        ("judge", FailureReason.CHECKER),
    ],
)
def test_a_fault_is_a_failed_slot_and_never_a_zero(breaks: str, reason: FailureReason) -> None:
    result = _play(*([] if breaks == "reset" else [CALL] if breaks == "call" else [END]), breaks=breaks)
    assert result.failure is reason and result.progress is None
    assert "ZeroDivisionError" in result.detail


def test_time_and_size_limits_are_failed_slots() -> None:
    assert _play(CALL, limits=Limits(seconds=0.1)).failure is FailureReason.TIMEOUT
    big = Completion("x" * 1000, ("f()",))
    assert _play(big, limits=Limits(characters=500)).failure is FailureReason.TOO_LARGE


def test_ids_masks_and_logprobs_line_up_and_mark_what_was_sampled() -> None:
    first = Completion("", ("f()",), (1, 2), (3,), (-0.5,))
    second = Completion("", (), (4,), (5, 6), (-0.1, -0.2))
    result = _play(first, second, END, limits=Limits())
    assert result.token_ids == (1, 2, 3, 4, 5, 6)
    assert result.loss_mask == bytes([0, 0, 1, 0, 1, 1])
    assert result.logprobs == (0.0, 0.0, -0.5, 0.0, -0.1, -0.2)
    assert result.tokens == 3


def test_ids_without_their_logprobs_are_a_policy_error() -> None:
    assert _play(Completion("", (), (1,), (2, 3), (-0.1,))).failure is FailureReason.POLICY


def test_seeds_are_63_bits_and_differ_by_run_group_and_attempt() -> None:
    seeds = {attempt_seed(run, group, attempt) for run in (1, 2) for group in ("a", "b") for attempt in range(16)}
    assert len(seeds) == 64 and all(0 <= seed < 2**63 for seed in seeds)
    assert attempt_seed(1, "a", 0) == attempt_seed(1, "a", 0) == 5989501408426133609


def test_withheld_tools_are_announced_once_and_again_when_back() -> None:
    turns = (Turn(("a",), (), ("f", "g")), Turn(("b",), (), ("f", "g")), Turn((), ("f()",), ("g",)), Turn(("c",), ()))
    task = TaskDefinition("t", "fake", "miss_func", "s", (), "{}", turns)
    assert [announcement(task, turn) for turn in range(4)] == ["without f g", "", "with f", "with g"]
