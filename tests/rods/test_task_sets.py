from pathlib import Path

import pytest

from producers.environments.workbench.source import WorkbenchSource
from rods.errors import UserError
from rods.settings import Settings, load_settings
from rods.task_sets import sourced_rules, task_sets
from schemas.rules import LearnerRules, Rules
from tests.task_files import write_tasks


def settings(tasks: str = "workbench", pool_tasks: int = 0, evaluate_tasks: int = 0) -> Settings:
    return Settings(
        tasks=tasks, rules=Rules(pool_tasks=pool_tasks, learner=LearnerRules(evaluate_tasks=evaluate_tasks))
    )


def test_a_source_gives_as_many_tasks_as_the_rules_ask_for() -> None:
    sets = task_sets(settings(pool_tasks=5, evaluate_tasks=3))
    assert (sets.source, len(sets.originals), len(sets.heldout)) == ("workbench", 5, 3)
    assert not {task.task for task in sets.originals} & {task.task for task in sets.heldout}


def test_the_workbench_makes_more_tasks_where_more_are_asked_for() -> None:
    assert len(task_sets(settings(pool_tasks=300)).originals) == 300


def test_more_tasks_leave_the_first_ones_as_they_are() -> None:
    assert task_sets(settings(pool_tasks=300)).originals[:9] == task_sets(settings(pool_tasks=9)).originals


def test_bfcl_is_split_in_halves() -> None:
    assert len(task_sets(settings("bfcl")).originals) == 400


def test_a_task_file_gives_its_tasks_and_names_their_source(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    tasks = tuple(WorkbenchSource(train=4, heldout=0).tasks("train"))
    write_tasks(path, tasks)
    sets = task_sets(settings(str(path), pool_tasks=3))
    assert (sets.source, sets.originals, sets.heldout) == ("workbench", tasks[:3], ())


def test_the_rules_name_the_environment_that_runs_a_task_file_and_not_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    write_tasks(path, tuple(WorkbenchSource(train=2, heldout=0).tasks("train")))
    loaded = load_settings(flags={"tasks": str(path)})
    assert sourced_rules(loaded).source == "workbench"
    assert sourced_rules(load_settings(flags={"tasks": "bfcl"})).source == "bfcl"


def test_the_digest_is_of_content_and_of_both_sets() -> None:
    digests = {task_sets(settings(pool_tasks=4, evaluate_tasks=held)).digest for held in (0, 1)}
    assert len(digests) == 2
    assert task_sets(settings(pool_tasks=4)).digest in digests


def test_a_source_that_does_not_exist_and_a_broken_file_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no task source or task file 'nowhere'; choose"):
        task_sets(settings("nowhere"))
    (tmp_path / "broken.jsonl").write_text("{")
    with pytest.raises(UserError) as error:
        task_sets(settings(str(tmp_path / "broken.jsonl")))
    assert "\n" not in str(error.value)
