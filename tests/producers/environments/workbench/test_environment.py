"""Judging: state, results and surplus calls; hostile texts fail without effect; attempts share nothing."""

import pytest

from producers.environments.errors import EnvironmentFault
from producers.environments.workbench.environment import SURPLUS_CALLS
from producers.environments.workbench.generate import generate
from producers.environments.workbench.source import WorkbenchSource
from schemas.rules import canonical_json
from schemas.task import TaskDefinition, Turn

STATE = {
    "Files": {"folders": {"archive": {}, "work": {"notes": 20, "report": "anna"}}},
    "Wallet": {"debts": {"bob": 7}, "money": 40, "paid": {}},
}
HOSTILE = [
    "__import__('os').system('true')",
    "().__class__.__mro__",
    "_home(file='notes')",
    "known(kind='file')",
    "state()",
    "__init__(state={})",
    "read.__globals__",
    "read(file=[x for x in (1, 2)])",
    "read(file=read(file='notes'))",
    "read(**{'file': 'notes'})",
    "pay(person='bob', amount=" + "9" * 5000 + ")",
    "pay(person='bob', amount=True)",
    "pay(person='bob', amount=1.0)",
    "pay(person='bob', amount=-5)",
    "read(file=None)",
    "read(file=['notes'])",
    "write(file='notes', text='" + "a" * 1_000_000 + "')",
    "(" * 10_000,
    "lambda: 0",
    "read(file='notes'); read(file='notes')",
    "",
    "\x00",
    "read(file='notes', file='notes')",
    "read('notes', file='notes')",
    "read(file='notes', self=1)",
    "move('notes', 'archive', 'work')",
    "city_of(person='anna')",
]


def _task(*turns: Turn) -> TaskDefinition:
    return TaskDefinition("t", "workbench", "base", "s", ("Files", "Wallet"), canonical_json(STATE), turns)


def _asks(*calls: str, withheld: tuple[str, ...] = ()) -> Turn:
    return Turn(("do it .",), calls, withheld)


def _passes(task: TaskDefinition, *calls: str) -> bool:
    environment = WorkbenchSource().reset(task)
    for call in calls:
        environment.call(call)
    return environment.judge()


def test_the_right_calls_pass_and_positional_arguments_are_the_same_calls() -> None:
    task = _task(_asks("move(file='notes', folder='archive')"))
    assert _passes(task, "move(file='notes', folder='archive')")
    assert _passes(task, "move('notes', 'archive')")


def test_a_missing_an_altered_and_an_added_change_fail() -> None:
    task = _task(_asks("pay(person='bob', amount=7)"))
    assert not _passes(task)
    assert not _passes(task, "pay(person='bob', amount=8)")
    assert not _passes(task, "pay(person='bob', amount=7)", "delete(file='notes')")


def test_a_look_up_must_have_been_made() -> None:
    task = _task(_asks("debt(person='bob')", "pay(person='bob', amount=7)"))
    assert not _passes(task, "pay(person='bob', amount=7)")
    assert _passes(task, "debt(person='bob')", "pay(person='bob', amount=7)")


def test_surplus_reads_pass_up_to_the_cap_and_failed_calls_count_too() -> None:
    task = _task(_asks("delete(file='notes')"))
    for surplus in ("balance()", "nonsense("):
        assert _passes(task, "delete(file='notes')", *[surplus] * SURPLUS_CALLS)
        assert not _passes(task, "delete(file='notes')", *[surplus] * (SURPLUS_CALLS + 1))


def test_a_turn_without_ground_truth_passes_only_without_any_call() -> None:
    task = _task(_asks())
    assert _passes(task)
    assert not _passes(task, "balance()")
    assert not _passes(task, "nonsense")


def test_a_withheld_tool_is_neither_announced_nor_run_until_it_is_revealed() -> None:
    environment = WorkbenchSource().reset(_task(_asks(withheld=("read",)), _asks("read(file='notes')")))
    assert "read" not in {tool.name for tool in environment.tools()}
    assert not environment.call("read(file='notes')").ok
    environment.judge()
    assert "read" in {tool.name for tool in environment.tools()}
    assert environment.call("read(file='notes')").text == "20"
    assert environment.judge()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_fail_without_effect(text: str) -> None:
    environment = WorkbenchSource().reset(_task(_asks("balance()")))
    result = environment.call(text)
    assert not result.ok and len(result.text) < 100
    environment.call("balance()")
    assert environment.judge()


def test_two_attempts_at_a_task_share_nothing() -> None:
    task = _task(_asks("delete(file='notes')"))
    first, second = WorkbenchSource().reset(task), WorkbenchSource().reset(task)
    assert first.call("delete(file='notes')").ok
    assert second.call("read(file='notes')").text == "20"
    assert second.call("delete(file='notes')").ok


def test_a_task_that_cannot_run_is_a_fault_not_a_verdict() -> None:
    broken = TaskDefinition("t", "workbench", "base", "s", ("Files",), "{}", (_asks(),))
    with pytest.raises(EnvironmentFault):
        WorkbenchSource().reset(broken)
    environment = WorkbenchSource().reset(_task(_asks("read(file='memo')")))
    with pytest.raises(EnvironmentFault):
        environment.judge()
    finished = WorkbenchSource().reset(_task(_asks()))
    assert finished.judge()
    with pytest.raises(EnvironmentFault):
        finished.tools()


def test_dropping_any_one_call_of_a_ground_truth_fails_its_turn() -> None:
    source = WorkbenchSource()
    for index in range(150):
        task = generate(11, index, "train")
        for at, turn in enumerate(task.turns):
            for dropped in range(len(turn.ground_truth)):
                environment = source.reset(task)
                for earlier in task.turns[:at]:
                    for call in earlier.ground_truth:
                        environment.call(call)
                    assert environment.judge()
                for place, call in enumerate(turn.ground_truth):
                    if place != dropped:
                        environment.call(call)
                assert not environment.judge(), (task, at, dropped)
