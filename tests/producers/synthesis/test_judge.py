"""The rules judge: each criterion has something it objects to."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from producers.environments.bfcl import BfclSource
from producers.synthesis.backend import Criterion, JudgeRequest, Opinion
from producers.synthesis.execute import Execution
from producers.synthesis.plan import Plan, Ref, Step
from producers.synthesis.rules_backend import RulesBackend
from schemas.task import TaskDefinition, Turn

BACKEND = RulesBackend()
STATE = '{"VehicleControlAPI":{"fuelLevel":5.0}}'
CALLS = (("liter_to_gallon(liter=17.0)", "fillFuelTank(fuelAmount=4.490924)"), ("set_navigation(destination='Elm 7')",))
STEPS = (
    (Step("liter_to_gallon", (("liter", 17.0),)), Step("fillFuelTank", (("fuelAmount", Ref(0, ("gallon",))),))),
    (Step("set_navigation", (("destination", "Elm 7"),)),),
)
PLAN = Plan("bfcl", ("VehicleControlAPI",), STATE, "base", "the drive", STEPS)
EXECUTION = Execution(PLAN, CALLS, (("{}", "{}"), ("{}",)))
TURNS = (
    Turn(("Today is all about the drive. Please turn 17 liters into gallons and put them in.",), CALLS[0]),
    Turn(("Next, guide me to 'Elm 7'.",), CALLS[1]),
)
TASK = TaskDefinition("t", "bfcl", "base", "0", ("VehicleControlAPI",), STATE, TURNS)


def opinions(task: TaskDefinition) -> Sequence[Opinion]:
    return BACKEND.judge(JudgeRequest(task, EXECUTION))


def asked(first: str, second: str = TURNS[1].requests[0]) -> TaskDefinition:
    return replace(TASK, turns=(replace(TURNS[0], requests=(first,)), replace(TURNS[1], requests=(second,))))


def test_a_good_task_satisfies_all_five_criteria() -> None:
    assert [opinion.criterion for opinion in opinions(TASK)] == list(Criterion)
    assert all(opinion.holds and not opinion.reason for opinion in opinions(TASK))


@pytest.mark.parametrize(
    ("criterion", "task"),
    [
        (Criterion.MATCHES, asked("Today is all about the drive. Please turn 175 liters into gallons.")),
        (Criterion.MATCHES, asked(TURNS[0].requests[0], "Next, guide me home.")),
        (Criterion.CONSISTENT, replace(TASK, initial_state="{}")),
        (Criterion.CONSISTENT, replace(TASK, turns=(TURNS[0], replace(TURNS[1], ground_truth=("pwd()",))))),
        (Criterion.COHERENT, asked("Please turn 17 liters into gallons and put them in.")),
        (Criterion.COHERENT, asked(TURNS[0].requests[0], TURNS[0].requests[0])),
        (Criterion.NATURAL, asked("Today is all about the drive. Please turn 17 liters  into {gallons}.")),
        (Criterion.NATURAL, asked("the drive 17 liters")),
        (Criterion.AMBIGUITY, replace(TASK, turns=(*TURNS, Turn(("And one more.",), ())))),
        (
            Criterion.AMBIGUITY,
            replace(TASK, turns=(TURNS[0], replace(TURNS[1], ground_truth=()), replace(TURNS[1], requests=()))),
        ),
    ],
)
def test_a_criterion_objects(criterion: Criterion, task: TaskDefinition) -> None:
    found = next(opinion for opinion in opinions(task) if opinion.criterion is criterion)
    assert not found.holds
    assert found.reason


def test_the_judged_example_is_a_task_of_the_source() -> None:
    assert BfclSource().reset(TASK).judge() is False
