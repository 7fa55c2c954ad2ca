from hypothesis import given
from hypothesis import strategies as st

from learner.in_flight import MAX_GROUPS_PER_STEP
from learner.plan import held_out_groups, plan_epoch
from schemas.identity import group_id
from schemas.rollouts import Purpose
from schemas.rules import LearnerRules, RolloutRules, Rules

RULES = Rules(rollout=RolloutRules(tasks_per_step=3))
names = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=30)


@given(names, st.integers(1, 7), st.integers(1, 50))
def test_each_member_is_trained_on_once_in_steps_of_the_size_asked_for(
    members: list[str], size: int, first: int
) -> None:
    rules = Rules(rollout=RolloutRules(tasks_per_step=size))
    plans = plan_epoch(rules, 2, first, members, [])
    assert sorted(group.task for plan in plans for group in plan.groups) == sorted(members)
    assert all(len(plan.groups) == size for plan in plans[:-1]) and len(plans[-1].groups) <= size
    assert [plan.step for plan in plans] == list(range(first, first + len(plans)))
    assert [plan.last_of_epoch for plan in plans] == [False] * (len(plans) - 1) + [True]


@given(names, st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_in_which_members_are_given(members: list[str], random: object) -> None:
    shuffled = list(members)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert plan_epoch(RULES, 1, 1, shuffled, ["p"]) == plan_epoch(RULES, 1, 1, members, ["p"])


def test_the_order_differs_from_epoch_to_epoch_and_from_seed_to_seed() -> None:
    members = [f"t{number}" for number in range(20)]

    def order(seed: int, epoch: int) -> list[str]:
        rules = RULES.model_copy(update={"seed": seed})
        return [group.task for plan in plan_epoch(rules, epoch, 1, members, []) for group in plan.groups]

    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (1, 2)}) == 4


def test_probes_join_the_last_step_and_groups_are_named_by_what_they_are() -> None:
    *_, last = plan_epoch(RULES, 1, 5, ["a", "b", "c", "d"], ["gone"])
    assert [(group.purpose, group.task) for group in last.groups][1:] == [(Purpose.PROBE, "gone")]
    assert last.groups[-1].group == group_id(RULES.seed, 1, 6, "gone", "probe")


def test_an_empty_pool_still_has_a_step_that_closes_the_epoch() -> None:
    (plan,) = plan_epoch(RULES, 1, 1, [], [])
    assert (plan.groups, plan.last_of_epoch) == ((), True)


def test_a_step_holds_at_most_2048_groups_and_members_go_first() -> None:
    rules = Rules(rollout=RolloutRules(tasks_per_step=MAX_GROUPS_PER_STEP))
    members = [f"t{number}" for number in range(MAX_GROUPS_PER_STEP)]
    (plan,) = plan_epoch(rules, 1, 1, members, ["gone"])
    assert sorted(group.task for group in plan.groups) == sorted(members)


def test_an_evaluation_takes_the_first_held_out_tasks_and_none_by_default() -> None:
    rules = Rules(learner=LearnerRules(evaluate_tasks=2))
    assert [group.task for group in held_out_groups(rules, 1, 4, ["h3", "h1", "h2"])] == ["h3", "h1"]
    assert held_out_groups(Rules(), 1, 4, ["h3"]) == ()
