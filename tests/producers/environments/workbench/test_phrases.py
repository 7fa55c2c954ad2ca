"""Requests name every argument, refer to results, leave one open; flows find what feeds what."""

from random import Random

from producers.environments.calls import parse_call
from producers.environments.workbench.flow import Flow, flows
from producers.environments.workbench.generate import generate
from producers.environments.workbench.phrases import fill_in, request_for
from producers.environments.workbench.sample import draw_call
from producers.environments.workbench.tools import TOOLS
from producers.environments.workbench.world import World

PAY = parse_call("pay(person='anna', amount=40)")
DEBT = parse_call("debt(person='anna')")


def test_a_request_holds_every_argument_and_is_the_same_for_the_same_seed() -> None:
    for seed in range(10):
        text = request_for([DEBT, PAY], Random(seed))
        assert text.count("'anna'") == 2 and " 40" in text and text.endswith(" .")
        assert text == request_for([DEBT, PAY], Random(seed))


def test_a_reference_hides_the_value_and_an_open_argument_is_supplied_later() -> None:
    assert "40" not in request_for([DEBT, PAY], Random(0), references={(1, "amount")})
    assert "that amount" in request_for([DEBT, PAY], Random(0), references={(1, "amount")})
    assert "an amount" in request_for([PAY], Random(0), open_slot=(0, "amount"))
    assert "40" in fill_in(PAY, "amount", Random(0))


def test_no_request_leaks_a_tool_or_parameter_name_in_call_form() -> None:
    for index in range(200):
        for turn in generate(2, index, "train").turns:
            assert not any(mark in request for request in turn.requests for mark in ("(", "=", "_"))


def test_flows_find_the_latest_result_that_feeds_an_argument() -> None:
    assert flows([DEBT, PAY], ["40", "done"]) == (Flow(0, 1, "amount"),)
    assert flows([DEBT, PAY], ["39", "done"]) == ()


def test_every_reference_of_a_generated_request_is_a_flow() -> None:
    for index in range(300):
        task = generate(4, index, "train")
        calls = [parse_call(text) for turn in task.turns for text in turn.ground_truth]
        world = World.parse(task.classes, task.initial_state)
        found = flows(calls, [world.run(call).text for call in calls])
        said = sum(word == "that" for turn in task.turns for text in turn.requests for word in text.split())
        assert said <= len(found)


def test_drawn_calls_satisfy_the_presence_of_their_names() -> None:
    task = generate(8, 3, "train")
    world = World.parse(task.classes, task.initial_state)
    rng = Random(1)
    for spec in (spec for spec in TOOLS.values() if spec.domain in task.classes and spec.reads):
        call = draw_call(world, spec, rng, {})
        assert call is not None and world.run(call).ok
