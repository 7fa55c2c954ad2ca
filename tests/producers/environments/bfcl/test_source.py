"""The 800 tasks, their split, their tools, and environments that share nothing."""

import gc
import json
import weakref
from collections import Counter
from dataclasses import replace

import pytest

from producers.environments.bfcl import BfclSource
from producers.environments.bfcl.environment import RESULT_CHARACTERS, BfclEnvironment
from producers.environments.errors import EnvironmentFault, TaskSourceError
from producers.environments.judge import score
from schemas.task import Category, TaskDefinition

SOURCE = BfclSource()
TRAIN = tuple(SOURCE.tasks("train"))
HELDOUT = tuple(SOURCE.tasks("heldout"))
BY_ID = {task.task: task for task in (*TRAIN, *HELDOUT)}


def truth(task: TaskDefinition) -> list[tuple[str, ...]]:
    return [turn.ground_truth for turn in task.turns]


def test_all_800_ground_truths_pass() -> None:
    passed = [task.task for task in BY_ID.values() if all(score(SOURCE.reset(task), task.turns_total, truth(task)))]
    assert len(passed) == 800


def test_the_splits_share_no_scenario_and_hold_400_tasks_each_a_hundred_of_every_category() -> None:
    for split in (TRAIN, HELDOUT):
        assert Counter(task.category for task in split) == {category.value: 100 for category in Category}
    assert {task.scenario for task in TRAIN} == {str(number) for number in range(100)}
    assert {task.scenario for task in HELDOUT} == {str(number) for number in range(100, 200)}
    with pytest.raises(TaskSourceError):
        SOURCE.tasks("test")


def test_a_missing_function_is_withheld_until_the_turn_that_reveals_it() -> None:
    task = BY_ID["multi_turn_miss_func_0"]
    assert ["sort" in turn.withheld for turn in task.turns] == [True, True, True, False, False]
    environment = SOURCE.reset(task)
    offered = []
    for calls in truth(task):
        offered.append("sort" in {tool.name for tool in environment.tools()})
        for call in calls:
            environment.call(call)
        assert environment.judge()
    assert offered == [False, False, False, True, True]
    assert len(environment.tools()) > 0


def test_no_ground_truth_calls_a_withheld_function() -> None:
    for task in BY_ID.values():
        environment = SOURCE.reset(task)
        for turn in task.turns:
            names = {tool.name for tool in environment.tools()}
            assert {call.split("(")[0] for call in turn.ground_truth} <= names
            environment.judge()


def test_tools_are_described_by_json_schemas() -> None:
    tools = {tool.name: tool for tool in SOURCE.reset(BY_ID["multi_turn_base_0"]).tools()}
    assert tools["cd"].parameters["type"] == "object"
    assert tools["cd"].parameters["properties"]["folder"]["type"] == "string"
    assert tools["cd"].description.startswith("Change the current working directory")
    types = {
        json.dumps(tool.parameters).count('"dict"') + json.dumps(tool.parameters).count('"float"')
        for tool in tools.values()
    }
    assert types == {0}


def test_environments_share_nothing_and_a_variant_needs_no_known_id() -> None:
    task = replace(BY_ID["multi_turn_long_context_150"], task="variant", parent="multi_turn_long_context_150")
    first, second = SOURCE.reset(task), SOURCE.reset(task)
    for calls in truth(task):
        for call in calls:
            first.call(call)
        assert first.judge()
    assert score(second, task.turns_total, truth(task)) == (True,) * task.turns_total


def test_a_variant_with_another_state_acts_on_that_state() -> None:
    task = BY_ID["multi_turn_base_0"]
    state = json.loads(task.initial_state)
    state["GorillaFileSystem"]["root"] = {
        "home": {"type": "directory", "contents": {"new.txt": {"type": "file", "content": "x"}}}
    }
    environment = SOURCE.reset(replace(task, task="v", initial_state=json.dumps(state)))
    assert environment.call("cat(file_name='new.txt')").text == '{"file_content": "x"}'


def test_an_environment_is_freed_with_its_attempt() -> None:
    environment = SOURCE.reset(TRAIN[0])
    assert isinstance(environment, BfclEnvironment)
    kept = weakref.ref(environment._model.objects[0])
    del environment
    gc.collect()
    assert kept() is None


def test_records_of_the_long_context_belong_to_one_attempt() -> None:
    travelling = (task for task in BY_ID.values() if "TravelAPI" in task.classes)
    task = next(task for task in travelling if task.category == Category.LONG_CONTEXT)
    one, other = SOURCE.reset(task), SOURCE.reset(task)
    assert isinstance(one, BfclEnvironment)
    assert isinstance(other, BfclEnvironment)
    travel = task.classes.index("TravelAPI")
    cards, others = one._model.objects[travel].credit_card_list, other._model.objects[travel].credit_card_list
    assert len(cards) > 1
    assert all(cards[card] is not others[card] for card in cards)


def test_an_empty_turn_passes_whatever_was_called_unless_silence_is_asked_for() -> None:
    task = BY_ID["multi_turn_miss_param_0"]
    empty = truth(task).index(())
    turns = [*truth(task)[:empty], ("ls()",), *truth(task)[empty + 1 :]]
    assert all(score(SOURCE.reset(task), task.turns_total, turns))
    strict = BfclSource(empty_turn="no_calls")
    assert score(strict.reset(task), task.turns_total, turns).index(False) == empty
    assert all(score(strict.reset(task), task.turns_total, truth(task)))


def test_a_turn_in_which_nothing_is_called_fails_where_something_had_to_be() -> None:
    assert not SOURCE.reset(TRAIN[0]).judge()


def test_after_a_failed_turn_every_turn_fails_and_after_the_last_none_can_be_judged() -> None:
    task = TRAIN[0]
    environment = SOURCE.reset(task)
    verdicts = [environment.judge()]
    for calls in truth(task)[1:]:
        for call in calls:
            environment.call(call)
        verdicts.append(environment.judge())
    assert verdicts == [False] * task.turns_total
    assert not environment.call("ls()").ok
    with pytest.raises(EnvironmentFault):
        environment.judge()


def test_a_state_that_cannot_be_loaded_is_a_fault_and_an_unknown_class_a_flaw_of_the_task() -> None:
    for state in ["{", "[]", '{"GorillaFileSystem": {"root": 1}}']:
        with pytest.raises(EnvironmentFault):
            SOURCE.reset(replace(BY_ID["multi_turn_base_1"], initial_state=state))
    with pytest.raises(TaskSourceError):
        SOURCE.reset(replace(TRAIN[0], classes=("WebSearchAPI",)))


def test_a_long_result_is_shortened_for_the_reader() -> None:
    task = BY_ID["multi_turn_base_1"]
    state = {
        "GorillaFileSystem": {
            "root": {"r": {"type": "directory", "contents": {"a": {"type": "file", "content": "x" * 50_000}}}}
        }
    }
    result = SOURCE.reset(replace(task, initial_state=json.dumps(state))).call("cat('a')")
    assert result.ok
    assert len(result.text) == RESULT_CHARACTERS
