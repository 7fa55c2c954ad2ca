"""The scripted policy: right with growing odds, wrong in ways that fail, the same for the same seed."""

from collections import Counter
from dataclasses import replace

import pytest

from producers.environments.bfcl.source import BfclSource
from producers.environments.port import TaskSource
from producers.environments.workbench.source import WorkbenchSource
from producers.rollouts.attempt import attempt_seed
from producers.rollouts.group import GroupSpec, run_groups
from producers.rollouts.policy import Prompt
from producers.rollouts.scripted import PERFECT, ScriptedPolicy, Skill

TASK = next(iter(WorkbenchSource().tasks("train")))


def _means(source: TaskSource, version: int, count: int) -> dict[str, float]:
    tasks = list(source.tasks("train"))[:: max(1, len(list(source.tasks("train"))) // count)]
    specs = [GroupSpec(f"{version}/{task.task}", task, 16, seed=1) for task in tasks]
    outcomes = run_groups(ScriptedPolicy(version=version), source, specs)
    return {outcome.spec.task.task: outcome.mean_progress or 0.0 for outcome in outcomes}


def _zone(mean: float) -> str:
    return "mastered" if mean > 0.85 else "hard" if mean < 0.20 else "boundary"


@pytest.mark.slow
@pytest.mark.parametrize("source", [WorkbenchSource(train=200), BfclSource()], ids=["workbench", "bfcl"])
def test_all_three_zones_are_occupied_at_every_version_and_tasks_move_up(source: TaskSource) -> None:
    paths: dict[str, list[str]] = {}
    for version in range(6):
        means = _means(source, version, 200)
        zones = Counter(map(_zone, means.values()))
        assert min(zones[zone] for zone in ("mastered", "boundary", "hard")) > 0.05 * len(means)
        for task, mean in means.items():
            paths.setdefault(task, []).append(_zone(mean))
    risen = [path for path in paths.values() if path[0] == "hard" and path[-1] == "mastered"]
    assert any("boundary" in path for path in risen)
    assert sum(path[0] == "hard" and path[-1] != "hard" for path in paths.values()) > 0.1 * len(paths)


def test_a_turn_once_right_stays_right_as_the_version_grows() -> None:
    truth = TASK.turns[0].ground_truth
    prompt = Prompt("a", TASK, 0, 0, (), (), 0, 1.0)
    for number in range(200):
        asked = replace(prompt, seed=attempt_seed(1, "g", number))
        right = [ScriptedPolicy(version=version).complete([asked])[0].calls == truth for version in range(8)]
        assert right == sorted(right)


def test_the_skill_grows_with_the_version_up_to_its_limit() -> None:
    skill = Skill()
    odds = [skill.right(0.5, version) for version in range(skill.versions + 3)]
    assert odds == sorted(odds) and odds[-1] == odds[-3]
    assert skill.right(0.0, 0) > 0.9 and skill.right(1.0, 0) < 0.1
    assert PERFECT.right(0.99, 0) == 1.0


def test_calls_come_in_one_message_or_one_by_one() -> None:
    task = next(task for task in WorkbenchSource().tasks("train") if len(task.turns[0].ground_truth) > 1)
    truth = task.turns[0].ground_truth
    first = Prompt("a", task, 0, 0, (), (), 1, 1.0)
    assert ScriptedPolicy(PERFECT).complete([first])[0].calls == truth
    assert ScriptedPolicy(PERFECT).complete([replace(first, message=1)])[0].calls == ()
    singly = [
        ScriptedPolicy(PERFECT, per_call=True).complete([replace(first, message=message)])[0].calls
        for message in range(len(truth) + 1)
    ]
    assert singly == [*((call,) for call in truth), ()]


def test_loading_a_version_needs_no_weights() -> None:
    policy = ScriptedPolicy()
    policy.load(5, "nowhere", "")
    assert policy.version == 5


def test_a_mistake_never_is_the_ground_truth() -> None:
    never = ScriptedPolicy(Skill(base=-1000.0, spread=0.0))
    for task in list(WorkbenchSource().tasks("train"))[:50]:
        for turn, asked in enumerate(task.turns):
            prompt = Prompt("a", task, turn, 0, (), (), attempt_seed(1, task.task, turn), 1.0)
            assert never.complete([prompt])[0].calls != asked.ground_truth
