from dataclasses import replace

import pytest

from learner.boundary import alarms, last_seed_step
from schemas.rules import Rules, SynthesisRules
from schemas.seals import SealedGroup
from streams.pool.decide import decide_boundary
from tests.streams.pool.build import evidence, first_pool, folded, group, opened, rules, settled, variant

OPEN = rules(inject_share="1")


def raised(
    *groups: SealedGroup,
    chosen: Rules = OPEN,
    injects: bool = False,
    selected: dict[str, int] | None = None,
    contradicted: int = 0,
) -> list[str]:
    state = first_pool(chosen, "a", "b")
    state = folded([*([variant("a", "x"), settled("a")] if injects else []), opened(1, chosen)], state)
    assert state.cut is not None and state.boundary is not None
    found = replace(evidence(1, *groups, selected=selected), contradicted=contradicted)
    decision = decide_boundary(state.cut, state.boundary, found, 1)
    return [alarm.kind for alarm in alarms(decision, found, chosen, state.boundary, 1)]


def test_a_boundary_that_injects_and_an_epoch_with_boundary_tasks_raise_nothing() -> None:
    assert raised(group("a", 10), injects=True) == []


def test_nothing_to_inject_is_starvation() -> None:
    assert raised(group("a", 10)) == ["starvation"]


def test_no_task_at_the_boundary_is_depletion() -> None:
    assert raised(group("a", 20), group("b", 0), injects=True) == ["depletion"]


def test_a_variant_of_a_seed_that_was_never_selected_is_told() -> None:
    assert raised(group("a", 10), injects=True, selected={}) == ["unselected", "starvation"]


def test_seals_that_contradict_the_first_are_told() -> None:
    assert raised(group("a", 10), injects=True, contradicted=2) == ["contradiction"]


def test_a_static_pool_raises_nothing() -> None:
    assert raised(chosen=OPEN.model_copy(update={"curriculum": "static"})) == []


@pytest.mark.parametrize(("lag", "last", "included"), [(0, 5, 5), (2, 5, 3), (9, 5, 0)])
def test_a_boundary_includes_the_seeds_up_to_lag_steps_back(lag: int, last: int, included: int) -> None:
    assert last_seed_step(Rules(synthesis=SynthesisRules(lag_steps=lag)), last) == included
