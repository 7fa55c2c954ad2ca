"""Plans in fresh simulators: references, patches by dotted path, and giving up."""

import json

import pytest

from producers.environments.bfcl import BfclSource
from producers.synthesis.backend import PatchRequest
from producers.synthesis.errors import StageError
from producers.synthesis.execute import Patch, apply, execute, patch_of
from producers.synthesis.plan import Plan, Ref, Step, planned_profile, resolve
from producers.synthesis.rules_backend import RulesBackend

SOURCE = BfclSource()
BACKEND = RulesBackend()


def plan(*turns: tuple[Step, ...], classes: tuple[str, ...], state: dict[str, object]) -> Plan:
    return Plan("bfcl", classes, json.dumps(state), "base", "a trip", turns)


def patched(made: Plan, step: int, call: str, result: str) -> Patch | None:
    return BACKEND.patch(PatchRequest(made, step, call, result))


def unpatched(made: Plan, step: int, call: str, result: str) -> Patch | None:
    del made, step, call, result
    return None


def test_a_reference_takes_its_value_from_the_earlier_result() -> None:
    steps = (
        Step("liter_to_gallon", (("liter", 100.0),)),
        Step("fillFuelTank", (("fuelAmount", Ref(0, ("gallon",))),)),
    )
    made = plan(steps, classes=("VehicleControlAPI",), state={"VehicleControlAPI": {"fuelLevel": 5.0}})
    execution = execute(made, SOURCE, unpatched, 1)
    assert execution.calls == (("liter_to_gallon(liter=100.0)", "fillFuelTank(fuelAmount=26.4172)"),)
    assert execution.patches == ()


def test_a_refusal_is_patched_by_the_smallest_change_and_the_plan_runs_again() -> None:
    steps = (Step("withdraw_funds", (("amount", 50.0),)),)
    made = plan(steps, classes=("TradingBot",), state={"TradingBot": {"authenticated": True}})
    execution = execute(made, SOURCE, patched, 3)
    assert [patch.text() for patch in execution.patches] == ['TradingBot.market_status="Open"']
    assert json.loads(execution.plan.initial_state)["TradingBot"]["market_status"] == "Open"


def test_several_patches_add_up_within_the_attempts() -> None:
    steps = (Step("withdraw_funds", (("amount", 50.0),)),)
    made = plan(steps, classes=("TradingBot",), state={"TradingBot": {}})
    assert len(execute(made, SOURCE, patched, 3).patches) == 2
    with pytest.raises(StageError) as caught:
        execute(made, SOURCE, patched, 2)
    assert caught.value.functions == ("withdraw_funds",)


def test_a_missing_file_is_put_where_the_plan_stands() -> None:
    state: dict[str, object] = {"GorillaFileSystem": {"root": {"w": {"type": "directory", "contents": {}}}}}
    made = plan((Step("cat", (("file_name", "a.txt"),)),), classes=("GorillaFileSystem",), state=state)
    execution = execute(made, SOURCE, patched, 3)
    assert execution.patches[0].path == "GorillaFileSystem.root.w.contents.a\\.txt"


def test_what_no_patch_repairs_blames_the_function() -> None:
    made = plan((Step("get_tweet", (("tweet_id", 77),)),), classes=("TwitterAPI",), state={"TwitterAPI": {}})
    with pytest.raises(StageError, match="get_tweet") as caught:
        execute(made, SOURCE, patched, 3)
    assert caught.value.functions == ("get_tweet",)


def test_a_dangling_reference_is_a_stage_error() -> None:
    with pytest.raises(StageError):
        resolve(Step("f", (("a", Ref(0, ("missing",))),)), [{"present": 1}])


def test_a_patch_changes_its_path_and_nothing_else_and_keeps_the_order_of_keys() -> None:
    state = '{"Z":{"list":[1,2]},"A":{"b":1}}'
    assert apply(state, patch_of(9, "Z", "list", "1")) == '{"Z":{"list":[1,9]},"A":{"b":1}}'
    assert apply(state, patch_of(True, "New", "flag")) == '{"Z":{"list":[1,2]},"A":{"b":1},"New":{"flag":true}}'


def test_a_plan_shows_its_dependencies_before_it_runs() -> None:
    steps = (Step("post", (("content", "hi"),)), Step("share", (("id", Ref(0, ("id",))),)))
    found = planned_profile(plan(steps[:1], steps[1:], classes=("TwitterAPI",), state={}), "base")
    assert found.edges == ((0, 1, True),)
    assert found.coreference == 1
