from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.rules import Rules, SelectRules
from schemas.seals import SealedGroup
from streams.measure.exact import mean_of, phi_of
from streams.select.select import select
from tests.streams.rollout_log import barrier, expected, result, seal_of

SPREAD = {"best": (0, 2, 1, 1), "good": (0, 1, 1, 1), "mastered": (2, 2, 2, 2), "flat": (1, 1, 1, 1)}


def groups(passed: Mapping[str, tuple[int | None, ...]], category: str = "base") -> list[SealedGroup]:
    results = [result(task, passed=turns, category=category) for task, turns in passed.items()]
    return list(seal_of(*results, barrier(*[expected(task, category=category) for task in passed])).groups)


def chosen(
    found: list[SealedGroup], step: int = 1, last: Mapping[str, int] | None = None, **rules: object
) -> list[str]:
    settings = Rules.model_validate(rules)
    return [seed.task for seed in select(found, settings, 1, step, last or {})]


def test_boundary_tasks_are_ranked_by_phi() -> None:
    seeds = select(groups(SPREAD), Rules(), 1, 1, {})
    assert [(seed.task, seed.rank, seed.phi) for seed in seeds] == [("best", 0, "1/1"), ("good", 1, "15/16")]


def test_a_seed_names_its_evidence_and_derives_from_seed_and_step() -> None:
    (group,) = groups({"best": (0, 2, 1, 1)})
    (seed,) = select([group], Rules(), 1, 1, {})
    assert seed.evidence == (group.group,) and seed.variance == "1/6"
    assert seed.seed != select([group], Rules(seed=2), 1, 1, {})[0].seed


def test_ranking_by_variance_is_a_setting() -> None:
    found = groups({"narrow": (1, 1, 1, 2), "wide": (0, 0, 2, 2)})
    assert chosen(found, select={"rank_by": "variance", "quota": 1}) == ["wide"]


def test_ties_are_broken_by_task_id() -> None:
    found = groups(dict.fromkeys(("c", "a", "b"), (0, 2, 1, 1)))
    assert chosen(found) == ["a", "b"]


def test_each_category_has_its_quota_and_categories_are_in_order() -> None:
    found = groups(dict.fromkeys(("b1", "b2", "b3"), (0, 2, 1, 1)), "miss_func")
    found += groups(dict.fromkeys(("a1", "a2"), (0, 2, 1, 1)), "base")
    seeds = select(found, Rules(), 1, 1, {})
    assert [(seed.task, seed.rank) for seed in seeds] == [("a1", 0), ("a2", 1), ("b1", 2), ("b2", 3)]


def test_a_quota_of_zero_selects_nothing() -> None:
    assert chosen(groups(SPREAD), select={"quota": 0}) == []


@pytest.mark.parametrize(
    ("cooldown", "step", "free"), [(0, 2, True), (1, 2, False), (1, 3, True), (3, 4, False), (3, 5, True)]
)
def test_cooldown_counts_steps(cooldown: int, step: int, free: bool) -> None:
    found = groups({"best": (0, 2, 1, 1)})
    assert bool(chosen(found, step, {"best": 1}, select={"cooldown_steps": cooldown})) is free


def test_probes_and_groups_without_a_live_slot_are_never_seeds() -> None:
    probe = seal_of(result(purpose="probe"), barrier(expected(purpose="probe"))).groups
    dead = groups({"t": (None,) * 4})
    assert chosen([*probe, *dead]) == [] and chosen([*probe, *dead], curriculum="random") == []


def test_a_static_curriculum_selects_nothing() -> None:
    assert chosen(groups(SPREAD), curriculum="static") == []


def test_random_seeds_are_as_many_and_drawn_whatever_their_zone() -> None:
    found = groups({**SPREAD, **{f"m{i}": (2, 2, 2, 2) for i in range(40)}})
    drawn = {tuple(chosen(found, step, curriculum="random")) for step in range(1, 20)}
    assert {len(tasks) for tasks in drawn} == {2}
    assert len(drawn) > 10 and any(task.startswith("m") for tasks in drawn for task in tasks)


def test_random_seeds_depend_on_the_seed_not_on_the_order() -> None:
    found = groups({**SPREAD, **{f"m{i}": (2, 2, 2, 2) for i in range(40)}})
    assert chosen(found, curriculum="random") == chosen(found[::-1], curriculum="random")
    assert chosen(found, curriculum="random", seed=1) != chosen(found, curriculum="random", seed=9)


def test_the_quota_default_is_two() -> None:
    assert SelectRules().quota == 2


VECTORS = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=5), min_size=1, max_size=6)


@given(VECTORS)
def test_the_rank_by_phi_is_that_of_the_fractions_also_where_live_slots_differ(vectors: list[list[int]]) -> None:
    found = [
        group
        for index, turns in enumerate(vectors)
        for group in seal_of(result(f"t{index}", turns), barrier(expected(f"t{index}", k=len(turns)))).groups
    ]
    boundary = [group for group in found if group.boundary]
    by_fractions = sorted(boundary, key=lambda group: (-phi_of(mean_of(group.state.window)), group.task))
    assert chosen(found, select={"quota": 9}) == [group.task for group in by_fractions]
