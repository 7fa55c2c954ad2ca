"""The generator: pure, sized, four categories, splits that share nothing, ground truths that pass."""

import itertools
import json
from collections.abc import Iterator

import pytest

from producers.environments.errors import TaskSourceError
from producers.environments.workbench.dial import EASY, HARD, NORMAL, Dial
from producers.environments.workbench.generate import SPLITS, generate, split_of
from producers.environments.workbench.source import WorkbenchSource
from schemas.rules import canonical_json
from schemas.task import Category, TaskDefinition


def _tasks(split: str, count: int, seed: int = 1, dial: Dial = NORMAL) -> Iterator[TaskDefinition]:
    return (generate(seed, index, split, dial) for index in range(count))


def _calls(task: TaskDefinition) -> tuple[str, ...]:
    return tuple(call for turn in task.turns for call in turn.ground_truth)


def test_a_task_is_a_pure_function_of_seed_index_split_and_dial() -> None:
    assert list(_tasks("train", 40)) == list(_tasks("train", 40))
    assert generate(1, 3, "train") != generate(2, 3, "train")
    assert generate(1, 3, "train", HARD) != generate(1, 3, "train", EASY)


@pytest.mark.slow
def test_the_splits_share_no_id_no_state_and_no_call_sequence_even_across_seeds() -> None:
    train = list(_tasks("train", 1500)) + list(_tasks("train", 300, seed=7))
    heldout = list(_tasks("heldout", 1500)) + list(_tasks("heldout", 300, seed=9))
    for content in (
        lambda task: task.task,
        lambda task: task.scenario,
        lambda task: task.initial_state,
        _calls,
        lambda task: task.turns,
    ):
        assert not {content(task) for task in train} & {content(task) for task in heldout}


def test_a_state_tells_its_split() -> None:
    for split in SPLITS:
        assert {split_of(task.initial_state) for task in _tasks(split, 100)} == {split}


@pytest.mark.parametrize("category", list(Category))
def test_500_ground_truths_of_each_category_pass_every_turn(category: Category) -> None:
    source = WorkbenchSource()
    for task in _tasks("train", 500, dial=Dial(categories=(category,))):
        assert task.category == category.value
        environment = source.reset(task)
        for turn in task.turns:
            assert all(environment.call(call).ok for call in turn.ground_truth), task
            assert environment.judge(), task


@pytest.mark.parametrize("dial", [EASY, NORMAL, HARD])
def test_tasks_keep_within_the_dial(dial: Dial) -> None:
    for task in _tasks("heldout", 200, dial=dial):
        assert min(dial.turns) <= task.turns_total <= max(dial.turns)
        assert all(len(turn.ground_truth) <= dial.calls[1] for turn in task.turns)
        assert min(dial.classes) <= len(task.classes) <= max(dial.classes)


def test_initial_states_are_canonical_json_of_exactly_the_classes() -> None:
    for task in _tasks("train", 100):
        state = json.loads(task.initial_state)
        assert canonical_json(state) == task.initial_state
        assert tuple(sorted(state)) == task.classes


def test_a_missing_function_is_withheld_for_one_turn_and_revealed_in_the_next() -> None:
    for task in _tasks("train", 200, dial=Dial(categories=(Category.MISSING_FUNCTION,))):
        pairs = [(a, b) for a, b in itertools.pairwise(task.turns) if a.withheld]
        assert len(pairs) == 1
        asked, revealed = pairs[0]
        assert asked.ground_truth == () and asked.requests and revealed.requests == () and revealed.withheld == ()
        assert any(call.startswith(f"{asked.withheld[0]}(") for call in revealed.ground_truth)


def test_a_missing_parameter_is_supplied_in_the_next_turn() -> None:
    for task in _tasks("train", 200, dial=Dial(categories=(Category.MISSING_PARAMETER,))):
        empty = [index for index, turn in enumerate(task.turns) if not turn.ground_truth]
        assert len(empty) == 1
        answer = task.turns[empty[0] + 1]
        value = next(word for word in answer.requests[0].split() if word.isdigit() or word.startswith("'"))
        assert value not in task.turns[empty[0]].requests[0].split() or value.isdigit() or answer.ground_truth
        assert any(value in call for call in answer.ground_truth)


def test_a_long_context_holds_more_names() -> None:
    def size(category: Category) -> float:
        tasks = list(_tasks("train", 100, dial=Dial(categories=(category,))))
        return sum(len(task.initial_state) / len(task.classes) for task in tasks)

    assert size(Category.LONG_CONTEXT) > 1.5 * size(Category.BASE)


def test_the_source_has_two_splits_of_the_sizes_asked_for() -> None:
    source = WorkbenchSource(train=8, heldout=12)
    assert [len(list(source.tasks(split))) for split in SPLITS] == [8, 12]
    assert len({task.task for split in SPLITS for task in source.tasks(split)}) == 20
    with pytest.raises(TaskSourceError):
        source.tasks("test")
    with pytest.raises(TaskSourceError):
        WorkbenchSource(train=-1)
