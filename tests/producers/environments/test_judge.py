"""The two checks of a turn, and how a record becomes verdicts."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from producers.environments.errors import EnvironmentFault
from producers.environments.judge import responses_match, score, states_match
from producers.environments.port import CallResult, Tool


class Thing:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def test_states_match_when_every_public_attribute_of_the_truth_is_equal() -> None:
    assert states_match([Thing(a=[1], _b=1)], [Thing(a=[1], _b=2)])
    assert not states_match([Thing(a=[1])], [Thing(a=[2])])
    assert not states_match([Thing()], [Thing(a=None)])
    assert states_match([Thing(a=1, extra=2)], [Thing(a=1)])


def test_a_state_too_deep_to_compare_differs() -> None:
    one: list[Any] = []
    other: list[Any] = []
    one.append(one)
    other.append(other)
    assert not states_match([Thing(a=one)], [Thing(a=other)])


def test_each_required_result_must_have_occurred_as_often() -> None:
    assert responses_match(["a", "b", "a"], ["a", "a"])
    assert not responses_match(["a", "b"], ["a", "a"])
    assert responses_match(["b", "a"], ["a", "b"])
    assert not responses_match([], ["a"])
    assert responses_match(["a"], [])


def test_no_more_results_are_asked_for_after_a_missing_one() -> None:
    def required() -> Iterator[str]:
        yield "missing"
        raise AssertionError("asked for more")

    assert not responses_match(["a"], required())


class Counting:
    """Passes the turns whose calls are all 'good'."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def tools(self) -> Sequence[Tool]:
        return ()

    def call(self, text: str) -> CallResult:
        self.calls.append(text)
        return CallResult(text, ok=True)

    def judge(self) -> bool:
        return set(self.calls) <= {"good"}


def test_an_attempt_ends_at_its_first_failed_turn() -> None:
    environment = Counting()
    assert score(environment, 4, [["good"], ["bad"], ["good"], []]) == (True, False, False, False)
    assert environment.calls == ["good", "bad"]


def test_turns_a_record_does_not_reach_fail() -> None:
    assert score(Counting(), 3, [["good"]]) == (True, False, False)


def test_a_record_longer_than_its_task_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault):
        score(Counting(), 1, [[], []])
