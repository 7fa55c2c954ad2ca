"""Verdicts agree with the package's own checker, which is called for every case."""

import pytest

from producers.environments.bfcl import BfclSource
from producers.environments.bfcl.comparison import compare
from producers.environments.corruption import corrupted_cases
from producers.environments.judge import score
from schemas.task import TaskDefinition, Turn
from tests.task_files import first_failed

SOURCE = BfclSource()
TASKS = (*SOURCE.tasks("train"), *SOURCE.tasks("heldout"))


@pytest.mark.slow
def test_on_8000_seeded_corruptions_verdict_and_first_failed_turn_agree_on_every_one() -> None:
    found = compare(TASKS, list(corrupted_cases(TASKS, 1, 8000)))
    assert found.cases == 8000
    assert found.disagreements == ()
    assert 1000 < found.valid < 4000


@pytest.mark.parametrize("seed", [11, 12])
def test_corruptions_of_corruptions_agree_too(seed: int) -> None:
    once = corrupted_cases(TASKS, seed, 800)
    rows = [(TASKS[case.position], case.turns) for case in once]
    twisted = [
        TaskDefinition(
            task.task, task.source, task.category, task.scenario, task.classes, task.initial_state,
            tuple(Turn(turn.requests, calls, turn.withheld) for turn, calls in zip(task.turns, turns, strict=True)),
        )
        for task, turns in rows
    ]  # fmt: skip
    found = compare(twisted, list(corrupted_cases(twisted, seed + 1, 800)))
    assert found.disagreements == ()


def task(*ground_truth: tuple[str, ...]) -> TaskDefinition:
    state = (
        '{"GorillaFileSystem":{"root":{"r":{"type":"directory","contents":{"a (1)":{"type":"file","content":"x"}}}}}}'
    )
    turns = tuple(Turn(("do",), calls) for calls in ground_truth)
    return TaskDefinition("multi_turn_base_0", "bfcl", "base", "0", ("GorillaFileSystem", "MathAPI"), state, turns)


@pytest.mark.parametrize(
    ("truth", "turns"),
    [
        ([("echo(content='see cd (x)', file_name='f')",)], [("echo(content='see cd (x)', file_name='f')",)]),
        ([("echo(content='see foo (x)', file_name='f')",)], [("echo(content='see foo(x)', file_name='f')",)]),
        ([("touch('b')",)], [("touch(file_name='b')",)]),
        ([("touch('b')",)], [("touch('b', 'c')", "touch('b')")]),
        ([("nothing(1)",)], [("nothing(1)",)]),
        ([("nothing(1)",)], [("ls()",)]),
        ([("cd()",)], [("cd()",)]),
        ([("cat('none')", "cat('none')")], [("cat('none')",)]),
        ([("cat('none')",), ("cat('none')",)], [("cat('none')", "cat('none')"), ("ls()",)]),
        ([("cat('none')",), ("cat('none')",)], [("cat('none')",), ()]),
        ([(), ("ls()",)], [("touch('z')",), ("ls()",)]),
        ([(), ("ls()",)], [("ls()",), ("pwd()",)]),
        ([("ls()",)], [("ls(a=True)", "ls()")]),
        ([("mean([1, 2])",)], [("mean(numbers=[1.0, 2])",)]),
        ([("add(1, 2)",)], [("add(1.0, 2)",)]),
        ([("logarithm(10, 10, 5)",)], [("logarithm(value=10, base=10, precision=5)",)]),
        ([("square_root(2, 5)", "square_root(2, 5)")], [("square_root(2, 5)", "square_root(2, 6)")]),
    ],
)
def test_corner_cases_agree(truth: list[tuple[str, ...]], turns: list[tuple[str, ...]]) -> None:
    definition = task(*truth)
    verdicts = score(SOURCE.reset(definition), definition.turns_total, turns)
    expected = first_failed(definition, turns)
    assert (None if all(verdicts) else verdicts.index(False)) == expected
