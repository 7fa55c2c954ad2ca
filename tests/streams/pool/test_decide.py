from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.pool import Decision, RetirementRule, Settlement
from schemas.rollouts import Purpose
from schemas.rules import Rules
from schemas.seals import SealedGroup
from streams.pool.decide import BoundaryDecision, decide_boundary, probes_of
from streams.pool.state import PoolState
from tests.streams.pool.build import (
    closed,
    decided,
    evidence,
    first_pool,
    folded,
    group,
    opened,
    ordered,
    registered,
    rules,
    seed,
    settled,
    started,
    variant,
)

HALF = rules(inject_share="0.5")
OPEN = rules(inject_share="1", protect_originals=False)
NAMES = tuple(f"t{number}" for number in range(10))


def retired(decision: BoundaryDecision) -> dict[str, str]:
    return {event.task: event.rule for event in decision.retired}


def injected(decision: BoundaryDecision) -> list[str]:
    return [event.task for event in decision.injected]


def with_variants(chosen: Rules, *contents: str, names: Sequence[str] = ("a", "b")) -> tuple[PoolState, list[str]]:
    """A pool whose boundary of epoch 1 has injected variants of `a`; their ids in the order of contents."""
    made = [variant("a", content, rank=rank) for rank, content in enumerate(contents)]
    state = folded([*made, settled("a")], first_pool(chosen, *names))
    state, decision = closed(state, 1, chosen)
    assert len(decision.injected) == len(contents)
    return state, [event.definition.task for event in made]


# Evidence


def test_the_pool_before_training_is_the_originals_and_names_the_rules() -> None:
    state = folded([registered("b"), registered("a"), registered("h", "heldout")])
    decision = decided(state, 0, HALF)
    made = decision.materialized
    assert (made.members, made.queue, made.version, made.previous_digest) == (("a", "b"), (), 0, "")
    assert decision.events() == (made,)


def test_evidence_of_another_epoch_or_another_selection_is_refused() -> None:
    state = folded([opened(1, HALF)], first_pool(HALF, "a"))
    assert state.cut is not None and state.boundary is not None
    for wrong in (evidence(2), replace(evidence(1), selection_digest="other")):
        with pytest.raises(ValueError, match="the seals of epoch 1 are not those its boundary names"):
            decide_boundary(state.cut, state.boundary, wrong, 1)


# Retirement


def test_a_variant_whose_first_measurement_is_below_burn_in_retires() -> None:
    state, (low, edge, again) = with_variants(OPEN, "x", "y", "z", names=NAMES)
    groups = [group(low, 3, visits=1, low=1), group(edge, 4, visits=1), group(again, 3, visits=2, low=0)]
    assert retired(decided(state, 2, OPEN, *groups)) == {low: RetirementRule.BURN_IN}


def test_an_original_has_no_burn_in() -> None:
    patient = rules(protect_originals=False, patience=2)
    decision = decided(first_pool(patient, "a"), 1, patient, group("a", 0, visits=1, low=1))
    assert decision.retired == ()


@pytest.mark.parametrize(
    ("low", "high", "rule"),
    [(2, 0, RetirementRule.DRIFT_LOW), (0, 2, RetirementRule.DRIFT_HIGH), (1, 0, None), (0, 1, None), (0, 0, None)],
)
def test_a_task_drifts_out_on_either_side_after_patience_visits(
    low: int, high: int, rule: RetirementRule | None
) -> None:
    patient = rules(protect_originals=False, patience=2)
    decision = decided(first_pool(patient, "a", "b"), 1, patient, group("a", 10, visits=5, low=low, high=high))
    assert retired(decision) == ({"a": rule} if rule else {})


def test_a_retirement_says_on_what_evidence() -> None:
    (event,) = decided(first_pool(OPEN, "a"), 1, OPEN, group("a", 20, visits=3, high=1)).retired
    assert (event.mean, event.phi, event.visits, event.evidence) == ("1/1", "0/1", 3, ("g-a",))


def test_only_a_task_with_a_live_attempt_in_this_epoch_retires() -> None:
    state = first_pool(OPEN, "a", "b")
    absent = group("a", 20, high=3)
    missing = replace(group("b", None), state=group("b", 20, high=3).state)
    assert decided(state, 1, OPEN, missing, before=[absent.state]).retired == ()


def test_originals_are_protected_unless_the_rules_say_otherwise() -> None:
    protected = rules()
    assert decided(first_pool(protected, "a"), 1, protected, group("a", 20, high=9)).retired == ()
    assert retired(decided(first_pool(OPEN, "a"), 1, OPEN, group("a", 20, high=9))) == {"a": "drift_high"}


def test_nothing_retires_on_evidence_where_the_rules_say_so() -> None:
    keeping = rules(retire=False, protect_originals=False, inject_share="1", p_max=1)
    state, (made,) = with_variants(keeping, "x")
    decision = decided(state, 2, keeping, group("a", 20, high=9), group(made, 0, visits=1, low=1))
    assert decision.retired == ()


def test_a_pinned_task_stays_and_a_banned_or_dismissed_one_leaves_even_if_protected() -> None:
    kept = folded([ordered("a", Decision.PIN)], first_pool(OPEN, "a", "b"))
    assert decided(kept, 1, OPEN, group("a", 20, high=9)).retired == ()
    protected = first_pool(rules(retire=False), "a", "b", "c")
    orders = [ordered("a", Decision.BAN, "1"), ordered("b", Decision.RETIRE, "2")]
    decision = decided(folded(orders, protected), 1, rules(retire=False))
    assert retired(decision) == {"a": RetirementRule.OPERATOR, "b": RetirementRule.OPERATOR}
    assert decision.materialized.members == ("c",)


def test_what_arrives_after_the_cut_waits_for_the_next_boundary() -> None:
    state = folded([opened(1, OPEN), ordered("a", Decision.BAN), variant("a", "x")], first_pool(OPEN, "a", "b"))
    assert state.cut is not None and state.boundary is not None
    decision = decide_boundary(state.cut, state.boundary, evidence(1), 1)
    assert (decision.retired, decision.injected) == ((), ())


# Injection


@pytest.mark.parametrize(("share", "members", "room"), [("0.2", 10, 2), ("0.2", 9, 1), ("0.2", 4, 0), ("0.35", 6, 2)])
def test_at_most_the_share_of_the_active_pool_comes_in_rounded_down(share: str, members: int, room: int) -> None:
    chosen = rules(inject_share=share)
    made = [variant("t0", f"v{number}", rank=number) for number in range(5)]
    state = folded([*made, settled("t0")], first_pool(chosen, *NAMES[:members]))
    decision = decided(state, 1, chosen)
    assert len(decision.injected) == room
    assert len(decision.materialized.queue) == 5 - room


def test_the_share_is_of_what_is_left_after_retirement() -> None:
    chosen = rules(inject_share="0.5", protect_originals=False)
    state = folded([variant("a", "x"), settled("a")], first_pool(chosen, "a", "b"))
    assert injected(decided(state, 1, chosen, group("b", 20, high=1))) == []
    assert len(injected(decided(state, 1, chosen))) == 1


def test_the_queue_is_ordered_by_epoch_step_rank_and_variant_id() -> None:
    first = [variant("b", "5", step=1, rank=0), variant("c", "6", step=1, rank=1)]
    second = [variant("a", f"{number}", step=2, rank=0) for number in range(3)]
    second.sort(key=lambda event: event.definition.task)
    arrived = [second[1], first[1], second[2], first[0], second[0]]
    state = folded(
        [*arrived, settled("a", 2), settled("b"), settled("c")], first_pool(rules(inject_share="0"), "a", "b")
    )
    wanted = [event.definition.task for event in (*first, *second)]
    assert list(decided(state, 1, rules(inject_share="0")).materialized.queue) == wanted


def test_variants_of_seeds_behind_the_last_included_step_wait_for_the_next_boundary() -> None:
    early, late = variant("a", "x", step=1), variant("a", "y", step=2)
    state = folded([early, late, settled("a", 1), settled("a", 2)], first_pool(OPEN, "a", "b", "c"))
    state, decision = closed(state, 1, OPEN, last_seed_step=1)
    assert injected(decision) == [early.definition.task]
    assert decision.materialized.queue == ()
    assert injected(decided(state, 2, OPEN)) == [late.definition.task]


def test_a_variant_of_a_seed_that_no_included_step_selected_is_passed_over_for_good() -> None:
    honest, early, made_up = variant("a", "x", step=1), variant("b", "y", step=1), variant("c", "z", step=0)
    facts = [made_up, early, honest, settled("a", 1), settled("b", 1)]
    state = folded(facts, first_pool(rules(inject_share="0"), "a", "b", "c"))
    selected = {honest.seed: 1, early.seed: 2}
    decision = decided(state, 1, OPEN, last_seed_step=1, selected=selected)
    assert injected(decision) == [honest.definition.task]
    assert decision.unselected == (made_up.definition.task, early.definition.task)
    after = folded([opened(1, OPEN, last_seed_step=1), *decision.events()], state)
    assert after.candidates == {}


def test_content_that_is_or_was_in_the_pool_waits_or_is_held_out_never_comes_in() -> None:
    state = first_pool(OPEN, "a", "b", "gone", others=[registered("h", "heldout")])
    state, _ = closed(state, 1, OPEN, group("gone", 20, high=1))
    assert "gone" in state.retired
    repeats = [variant("a", content, rank=rank) for rank, content in enumerate(("a", "b", "gone", "h", "new"))]
    twin = variant("b", "new", rank=9)
    state = folded([*repeats, twin, settled("a"), settled("b")], state)
    decision = decided(state, 2, OPEN)
    assert injected(decision) == [repeats[-1].definition.task]
    assert decision.materialized.queue == ()


def test_a_banned_variant_never_comes_in() -> None:
    made = variant("a", "x")
    state = folded([made, settled("a"), ordered(made.definition.task, Decision.BAN)], first_pool(OPEN, "a"))
    decision = decided(state, 1, OPEN)
    assert (injected(decision), decision.materialized.queue) == ([], ())


def test_p_max_bounds_the_generated_tasks() -> None:
    chosen = rules(inject_share="1", p_max=3)
    made = [variant("t0", f"v{number}", rank=number) for number in range(5)]
    state = folded([*made, settled("t0")], first_pool(chosen, *NAMES))
    decision = decided(state, 1, chosen)
    assert injected(decision) == [event.definition.task for event in made[:3]]


def test_new_variants_displace_those_of_lowest_phi_first_ties_by_id() -> None:
    chosen = rules(inject_share="1", p_max=3, patience=9)
    state, made = with_variants(chosen, "x", "y", "z", names=("a", "b", "c"))
    fresh = [variant("b", content, step=2, epoch=2, rank=rank) for rank, content in enumerate("uv")]
    state = folded([*fresh, settled("b", 2, 2)], state)
    lowest, *tied = made
    groups = [group(lowest, 19), group(tied[0], 8), group(tied[1], 12)]
    decision = decided(state, 2, chosen, *groups)
    assert retired(decision) == {lowest: RetirementRule.PRUNING, min(tied): RetirementRule.PRUNING}
    assert set(injected(decision)) == {event.definition.task for event in fresh}
    generated = set(decision.materialized.members) - {"a", "b", "c"}
    assert generated == {max(tied), *injected(decision)}


def test_variants_that_are_not_measured_yet_or_pinned_are_not_displaced() -> None:
    chosen = rules(inject_share="1", p_max=2, patience=9)
    state, (unmeasured, pinned) = with_variants(chosen, "x", "y")
    fresh = variant("b", "u", step=2, epoch=2)
    state = folded([fresh, settled("b", 2, 2), ordered(pinned, Decision.PIN)], state)
    decision = decided(state, 2, chosen, group(pinned, 19))
    assert (decision.retired, decision.injected) == ((), ())
    assert decision.materialized.queue == (fresh.definition.task,)
    assert {unmeasured, pinned} <= set(decision.materialized.members)


def test_a_lower_p_max_prunes_what_is_over_it() -> None:
    state, made = with_variants(OPEN, "x", "y", "z", names=NAMES)
    lower = rules(p_max=1, patience=9)
    groups = [group(name, passed) for name, passed in zip(made, (8, 10, 14), strict=True)]
    decision = decided(state, 2, lower, *groups)
    assert set(retired(decision)) == {made[0], made[2]}


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(0, 6), st.integers(0, 4))
def test_p_max_holds_after_every_boundary(passed: list[int], p_max: int, fresh: int) -> None:
    state, made = with_variants(OPEN, *(f"x{n}" for n in range(len(passed))), names=NAMES)
    chosen = rules(inject_share="1", p_max=p_max, patience=9, burn_in="0", probes_per_epoch=0)
    new = [variant("t1", f"n{rank}", step=2, epoch=2, rank=rank) for rank in range(fresh)]
    state = folded([*new, settled("t1", 2, 2)], state)
    groups = [group(name, count) for name, count in zip(made, passed, strict=True)]
    after, decision = closed(state, 2, chosen, *groups)
    assert sum(not member.original for member in after.members.values()) <= p_max
    assert not {event.task for event in decision.injected} & {event.task for event in decision.retired}
    assert tuple(sorted(after.members)) == decision.materialized.members


# Probes


def test_the_retired_task_probed_longest_ago_is_probed_next_ties_by_id() -> None:
    state = first_pool(OPEN, "a", "b", "c", "d")
    state, _ = closed(state, 1, OPEN, group("b", 20, high=1), group("c", 20, high=1))
    state, _ = closed(state, 2, OPEN, group("a", 20, high=1))
    assert probes_of(state, OPEN) == ["b"]
    assert probes_of(state, rules(probes_per_epoch=2)) == ["b", "c"]
    state, decision = closed(state, 3, OPEN, group("b", 20, purpose=Purpose.PROBE))
    assert [(probe.task, probe.zone, probe.mean, probe.boundary) for probe in decision.probed] == [
        ("b", "mastered", "1/1", False)
    ]
    assert probes_of(state, rules(probes_per_epoch=9)) == ["c", "a", "b"]


def test_a_probed_task_that_is_boundary_again_returns_and_counts_towards_the_share() -> None:
    chosen = rules(inject_share="0.5", protect_originals=False)
    state = folded([variant("a", "x"), settled("a")], first_pool(chosen, "a", "b", "c"))
    state, _ = closed(state, 1, chosen, group("c", 20, high=1), last_seed_step=0)
    after, decision = closed(state, 2, chosen, group("c", 10, purpose=Purpose.PROBE))
    assert [(event.task, event.returned) for event in decision.injected] == [("c", True)]
    assert after.members["c"].original and "c" not in after.retired
    assert len(decision.materialized.queue) == 1


def test_a_returned_variant_is_a_generated_task_still_and_needs_room() -> None:
    chosen = rules(inject_share="1", p_max=1, patience=9)
    state, (made,) = with_variants(chosen, "x")
    state, _ = closed(state, 2, chosen, group(made, 0, visits=1, low=1))
    assert retired(_) == {made: RetirementRule.BURN_IN}
    after, decision = closed(state, 3, chosen, group(made, 10, purpose=Purpose.PROBE))
    assert injected(decision) == [made] and not after.members[made].original
    assert after.members[made].seed == seed("a")


def test_an_original_returns_whatever_p_max_is() -> None:
    chosen = rules(inject_share="1", p_max=0, protect_originals=False)
    state, _ = closed(first_pool(chosen, "a", "b"), 1, chosen, group("a", 20, high=1))
    assert injected(decided(state, 2, chosen, group("a", 10, purpose=Purpose.PROBE))) == ["a"]


def test_a_probe_without_a_live_attempt_shows_nothing_and_gives_the_next_one_its_turn() -> None:
    state = first_pool(OPEN, "a", "b", "c")
    state, _ = closed(state, 1, OPEN, group("a", 20, high=1), group("b", 20, high=1))
    lost = replace(group("a", None, purpose=Purpose.PROBE), boundary=True, state=group("a", 10).state)
    state, decision = closed(state, 2, OPEN, lost)
    assert [(probe.zone, probe.mean, probe.boundary) for probe in decision.probed] == [("none", "", False)]
    assert decision.injected == () and probes_of(state, OPEN) == ["b"]


def test_a_banned_task_is_neither_probed_nor_taken_back() -> None:
    state, _ = closed(first_pool(OPEN, "a", "b"), 1, OPEN, group("a", 20, high=1))
    state = folded([ordered("a", Decision.BAN)], state)
    assert probes_of(state, OPEN) == []
    assert injected(decided(state, 2, OPEN, group("a", 10, purpose=Purpose.PROBE))) == []


# Digest


def example(**changes: Any) -> BoundaryDecision:
    """A boundary with a bit of everything; what `changes` names is otherwise."""
    chosen = changes.get("chosen", rules(inject_share="0.34", protect_originals=False))
    names = changes.get("names", ("a", "b", "c", "d"))
    registrations = [
        registered(name, generation=9, content=changes.get("content", "") if name == "b" else "") for name in names
    ]
    start = changes.get("start", [])
    state, _ = closed(folded([*start, *registrations]), 0, changes.get("first_rules", chosen))
    made = [variant("a", "x"), variant("b", "y", rank=1), variant("c", changes.get("queued", "z"), rank=2)]
    state = folded([*made, settled("a"), settled("b"), settled("c")], state)
    groups: list[SealedGroup] = [group("d", 20, high=1), group("a", 10, visits=changes.get("visits", 2))]
    return decided(state, 1, chosen, *groups)


def test_the_example_injects_retires_and_leaves_a_queue() -> None:
    decision = example()
    assert (len(decision.injected), len(decision.retired), len(decision.materialized.queue)) == (1, 1, 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"names": ("a", "b", "c", "d", "e")},
        {"content": "other"},
        {"queued": "w"},
        {"visits": 3},
        {"chosen": rules(inject_share="0.34", protect_originals=False, p_max=399)},
        {"chosen": rules(inject_share="0.34", protect_originals=True)},
        {"first_rules": rules(p_max=7)},
    ],
    ids=["members", "content", "queue", "streaks", "rules", "retired", "chain"],
)
def test_the_digest_changes_with_each_of_its_ingredients(changes: dict[str, Any]) -> None:
    assert example(**changes).materialized.digest != example().materialized.digest


def test_the_digest_depends_neither_on_the_generation_nor_on_offsets() -> None:
    later = example(start=[started(1), started(2), started(3)]).materialized
    assert (later.generation, example().materialized.generation) == (3, 1)
    assert later.digest == example().materialized.digest


@given(st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_in_which_seeds_are_answered(random: Any) -> None:
    made = {name: [variant(name, f"{name}-{n}", rank=rank) for n in range(2)] for rank, name in enumerate("abc")}
    streams = [[*made[name], settled(name)] for name in "abc"]

    def interleaved() -> list[object]:
        left, merged = [list(stream) for stream in streams], []
        while left := [stream for stream in left if stream]:
            merged.append(random.choice(left).pop(0))
        return merged

    chosen = rules(inject_share="0.5")
    start = first_pool(chosen, *NAMES)
    once = decided(folded([event for stream in streams for event in stream], start), 1, chosen)
    assert decided(folded(interleaved(), start), 1, chosen) == once


def test_a_half_written_boundary_decided_again_by_a_new_generation_is_the_same() -> None:
    chosen = rules(inject_share="0.5", protect_originals=False)
    facts = [variant("a", "x"), variant("b", "y", rank=1), settled("a"), settled("b")]
    start = folded([started(1), *facts], first_pool(chosen, "a", "b", "c", "d"))
    whole, decision = closed(start, 1, chosen, group("d", 20, high=1), group("c", 20, high=1))
    events = decision.events()
    assert len(events) == 4
    for written in range(len(events)):
        state = folded([opened(1, chosen), *events[:written], started(2)], start)
        assert state.cut is not None and state.boundary is not None
        again = decide_boundary(
            state.cut, state.boundary, evidence(1, group("d", 20, high=1), group("c", 20, high=1)), 2
        )
        state = folded(again.events(), state)
        assert (state.digest, state.members, state.retired) == (whole.digest, whole.members, whole.retired)
        assert again.materialized.generation == 2


def test_an_expired_seed_brings_in_what_it_had_made_before() -> None:
    made = variant("a", "x")
    state = folded([made, settled("a", outcome=Settlement.EXPIRED), variant("a", "y")], first_pool(OPEN, "a", "b"))
    assert injected(decided(state, 1, OPEN)) == [made.definition.task]
