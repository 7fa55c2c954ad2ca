"""From a base task to the category of its seed."""

from random import Random

import pytest

from producers.synthesis.augment import augment
from producers.synthesis.backend import Gap
from producers.synthesis.errors import StageError
from schemas.task import TaskDefinition, Turn

BASE = TaskDefinition(
    "t",
    "bfcl",
    "base",
    "0",
    ("GorillaFileSystem",),
    "{}",
    (
        Turn(("Look here.",), ("ls()",), ("rm",)),
        Turn(("Read it.",), ("cat(file_name='a')",), ("rm",)),
        Turn(("Look and read.",), ("ls()", "cat(file_name='b')"), ("rm",)),
    ),
)


def made(category: str, early: bool = True, gaps: tuple[Gap, ...] = (), seed: int = 0) -> TaskDefinition:
    return augment(BASE, category, gaps, early, Random(seed))


@pytest.mark.parametrize("seed", range(8))
def test_a_withheld_function_is_missing_until_a_turn_that_only_reveals_it(seed: int) -> None:
    task = made("miss_func", seed=seed)
    reveal = next(number for number, turn in enumerate(task.turns) if not turn.requests)
    missing = set(task.turns[reveal - 1].withheld) - {"rm"}
    assert len(missing) == 1
    assert task.turns[reveal - 1].ground_truth == ()
    assert any(text.split("(")[0] in missing for text in task.turns[reveal].ground_truth)
    for turn in task.turns[:reveal]:
        assert missing <= set(turn.withheld)
        assert not missing & {text.split("(")[0] for text in turn.ground_truth}
    assert all(turn.withheld == ("rm",) for turn in task.turns[reveal:])


def test_late_withholding_touches_no_other_turn() -> None:
    task = made("miss_func", early=False)
    assert sum(turn.withheld != ("rm",) for turn in task.turns) == 1


def test_an_open_argument_is_supplied_in_the_next_turn() -> None:
    task = made("miss_param", gaps=(Gap(1, "Read one of them.", "The one I mean is 'a'."),))
    assert [turn.requests for turn in task.turns[1:3]] == [("Read one of them.",), ("The one I mean is 'a'.",)]
    assert [turn.ground_truth for turn in task.turns[1:3]] == [(), ("cat(file_name='a')",)]
    assert len(task.turns) == 4


def test_without_a_place_for_it_a_category_cannot_be_made() -> None:
    with pytest.raises(StageError):
        made("miss_param")


def test_long_context_and_a_sources_own_category_leave_the_turns_alone() -> None:
    assert made("long_context").turns == BASE.turns
    assert made("special").category == "special"
