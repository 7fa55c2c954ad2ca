from dataclasses import replace
from decimal import Decimal

import pytest

from schemas.codec import encode
from schemas.rollouts import RolloutFinished, Slot
from schemas.rules import MeasureRules, PoolRules, Rules
from schemas.seals import Zone
from streams.errors import OffsetGapError
from streams.measure.fold import MAX_OPEN_RESULTS, evolve, skip
from streams.measure.grown import Grown
from streams.measure.outcome import outcome_of
from streams.measure.state import Counts, MeasureState, Result, Shape
from streams.measure.zones import unvisited
from tests.streams.rollout_log import barrier, expected, failed, folded, group_of, live, result, seal_of, seals, started

EXPECTED = expected()


def test_a_result_is_measured_at_once() -> None:
    (evolved,) = folded([result(passed=(0, 1, 2, None))])
    view = evolved.measured
    assert view is not None
    assert (view.mean, view.phi, view.variance, view.live, view.failed) == (0.5, 1.0, 0.25, 3, 1)
    assert (view.zone, view.visits, view.turns_passed, view.turns_total) == ("boundary", 1, 3, 2)


def test_a_view_is_the_same_bytes_each_time_it_is_derived() -> None:
    first, again = (folded([result()])[0].measured for _ in range(2))
    assert first is not None and again is not None
    assert encode(first) == encode(again)
    assert first.envelope.causation_id == result().envelope.event_id
    assert first.envelope.occurred_at == result().envelope.occurred_at


def test_a_group_without_a_live_slot_shows_no_mean() -> None:
    view = folded([result(passed=(None, None))])[0].measured
    assert view is not None
    assert (view.mean, view.phi, view.variance, view.live, view.zone, view.visits) == (None, None, None, 0, "none", 0)


def test_a_barrier_is_answered_with_what_stood_before_it() -> None:
    seal = seal_of(result(), barrier(expected()))
    (group,) = seal.groups
    assert (seal.epoch, seal.step, seal.partition, seal.barrier_offset, seal.pool_offset) == (1, 1, 0, 1, 7)
    assert group.passed == (0, 1, 2, 1) and group.reasons == ("", "", "", "") and group.execution == "e1"
    assert (group.zone, group.boundary, group.state.visits) == ("boundary", True, 1)


def test_an_expected_group_that_is_absent_is_missing_in_every_slot() -> None:
    group = group_of(barrier(expected(k=3)))
    assert group.passed == (None, None, None) and group.reasons == ("missing",) * 3
    assert (group.execution, group.zone, group.boundary, group.state.visits) == ("", "none", False, 0)


def test_the_first_result_of_a_group_counts_whole() -> None:
    events = (result(passed=(0, 0, 0, 1)), result(passed=(2, 2, 2, 2), execution="e2"), barrier(expected()))
    seal = seal_of(*events)
    assert seal.groups[0].passed == (0, 0, 0, 1) and seal.groups[0].execution == "e1"
    assert seal.duplicate == 1
    assert folded(events)[1].measured is None


def test_a_result_of_a_sealed_step_is_late() -> None:
    steps = folded([barrier(expected()), result(), barrier(expected(step=2), step=2)])
    assert steps[1].measured is None
    first, second = seals(steps)
    assert first.groups[0].passed == (None,) * 4
    assert second.late == 1


def test_a_result_of_a_step_that_is_not_open_is_refused() -> None:
    steps = folded([result(step=2), barrier(expected()), barrier(expected(step=2), step=2)])
    assert "not open" in steps[0].refusals[0].reason
    assert seals(steps)[1].groups[0].passed == (None,) * 4


def test_an_evaluate_group_is_measured_and_enters_nothing() -> None:
    evaluate = result(purpose="evaluate", step=0)
    steps = folded([barrier(), evaluate, barrier(step=2, last=True)])
    view = steps[1].measured
    assert view is not None and view.zone == "" and view.visits == 0 and view.mean == 0.5
    assert steps[1].state.results == {} and seals(steps)[1].state == () and seals(steps)[1].late == 0


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (result(k=5), "wrong K"),
        (result(passed=()), "wrong K"),
        (result(turns_total=0), "wrong total"),
        (result(purpose="play"), "unknown purpose"),
        (result(execution="x" * 2000), "too long"),
        (result(run="x" * 2000), "too long"),
        (replace(result(), envelope=replace(result().envelope, event_id="x" * 2000)), "too long"),
        (replace(result(), envelope=replace(result().envelope, correlation_id="x" * 2000)), "too long"),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(event: RolloutFinished, reason: str) -> None:
    (evolved,) = folded([event])
    (refusal,) = evolved.refusals
    assert reason in refusal.reason and refusal.event == event and refusal.offset == 0
    assert evolved.measured is None and evolved.state.counts.refused == 1


@pytest.mark.parametrize("wrong", [result(passed=(1, 1, 1)), result(total=3), result(category="other")])
def test_a_result_of_another_shape_is_refused_and_a_right_one_after_it_counts(wrong: RolloutFinished) -> None:
    steps = folded([wrong, result(), barrier(expected())])
    seal = seals(steps)[0]
    assert seal.groups[0].passed == (0, 1, 2, 1) and seal.refused == 1 and seal.duplicate == 0
    assert steps[-1].refusals[0].event == wrong


def test_a_result_that_the_barrier_did_not_expect_is_dropped_and_counted() -> None:
    steps = folded([result("other"), barrier(expected(), last=True)])
    (seal,) = seals(steps)
    assert seal.refused == 1 and [task.task for task in seal.state] == ["t"] and steps[-1].refusals == ()


@pytest.mark.parametrize(
    "slot",
    [
        live(1, turns_passed=3),
        live(1, turns_passed=-1),
        live(1, turns_total=5),
        live(1, outcomes=(True, True)),
        live(1, outcomes=(False, True)),
        live(1, outcomes=()),
        live(2, outcomes=(True, True, False)),
        live(1, tokens=-1),
        live(1, tool_calls=-1),
        live(1, latency=-1),
        live(1, policy_version=-1),
        live(1, trajectory="a" * 65),
        live(1, status="dancing"),
        live(1, reason="timeout"),
        failed(None),
        failed(""),
    ],
)
def test_a_slot_with_impossible_values_counts_as_failed(slot: Slot) -> None:
    event = result(passed=(1, 1, 2, 0))
    event = replace(event, slots=(slot, *event.slots[1:]))
    group = group_of(event, barrier(expected()))
    assert group.passed == (None, 1, 2, 0) and group.reasons == ("impossible", "", "", "")


def test_a_failed_slot_moves_no_mean() -> None:
    with_failure = group_of(result(passed=(2, 1, None, None)), barrier(expected()))
    assert with_failure.state.window[0].n == 2 and with_failure.state.window[0].sum_passed == 3
    assert with_failure.reasons[2:] == ("timeout", "timeout")


@pytest.mark.parametrize(
    ("passed", "zone", "boundary"),
    [
        ((2, 2, 2, 2), Zone.MASTERED, False),
        ((0, 0, 0, 0), Zone.HARD, False),
        ((1, 1, 1, 1), Zone.BOUNDARY, False),
        ((0, 2, 1, 1), Zone.BOUNDARY, True),
    ],
)
def test_zones_follow_the_mean_and_a_boundary_task_has_spread(
    passed: tuple[int, ...], zone: Zone, boundary: bool
) -> None:
    group = group_of(result(passed=passed), barrier(expected()))
    assert (group.zone, group.boundary) == (zone, boundary)


@pytest.mark.parametrize(("passed", "zone"), [(1, "boundary"), (0, "hard")])
def test_a_mean_at_the_lower_threshold_is_boundary(passed: int, zone: str) -> None:
    slots = (passed, 0, 0, 0, 0)
    group = group_of(result(passed=slots, total=1), barrier(expected(k=5, total=1)))
    assert group.zone == zone


def test_a_mean_at_the_upper_threshold_is_boundary() -> None:
    rules = Rules(measure=MeasureRules(alpha_high=Decimal("0.75")))
    group = group_of(result(passed=(1, 1, 1, 0), total=1), barrier(expected(total=1), rules=rules))
    assert group.zone == "boundary"


def test_variance_must_exceed_the_minimum() -> None:
    rules = Rules(measure=MeasureRules(min_variance=Decimal("0.25")))
    group = group_of(result(passed=(0, 1, 2), total=2), barrier(expected(k=3), rules=rules))
    assert (group.zone, group.boundary) == ("boundary", False)


def visits(*passes: tuple[int | None, ...], rules: Rules) -> list[object]:
    """A task's groups of four, one a step."""
    events: list[object] = []
    for step, passed in enumerate(passes, 1):
        events += [result(passed=passed, step=step), barrier(expected(step=step), step=step, rules=rules)]
    return events


def test_the_window_holds_the_last_groups_and_pools_them() -> None:
    rules = Rules(measure=MeasureRules(window=2))
    group = group_of(*visits((2, 2, 2, 2), (0, 0, 0, 0), (2, 2, 1, 1), rules=rules))
    assert [(part.n, part.sum_passed) for part in group.state.window] == [(4, 0), (4, 6)]
    assert (group.zone, group.state.visits) == ("boundary", 3)


def test_a_smaller_window_rule_drops_the_oldest_groups() -> None:
    wide, narrow = Rules(measure=MeasureRules(window=3)), Rules()
    events = [*visits((2, 2, 2, 2), (1, 1, 1, 1), rules=wide), result(step=3), barrier(expected(step=3), step=3)]
    assert narrow.measure.window == 1
    assert len(group_of(*events).state.window) == 1


def test_streaks_count_visits_in_a_row_beyond_the_drift_thresholds() -> None:
    high = group_of(*visits((2, 2, 2, 2), (2, 2, 2, 2), rules=Rules()))
    broken = group_of(*visits((0, 0, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1), rules=Rules()))
    low = group_of(*visits((2, 2, 2, 2), (0, 0, 0, 0), rules=Rules()))
    assert [(g.state.low_streak, g.state.high_streak) for g in (high, broken, low)] == [(0, 2), (0, 0), (1, 0)]


def test_streaks_use_the_pools_thresholds() -> None:
    rules = Rules(pool=PoolRules(drift_high=Decimal("0.4"), drift_low=Decimal("0.3")))
    group = group_of(*visits((1, 1, 1, 1), rules=rules))
    assert (group.state.low_streak, group.state.high_streak) == (0, 1)


def test_a_group_without_a_live_slot_changes_neither_window_nor_visits_nor_streaks() -> None:
    before = group_of(*visits((2, 2, 2, 2), rules=Rules()))
    after = group_of(*visits((2, 2, 2, 2), (None, None, None, None), rules=Rules()))
    assert after.state == before.state
    assert (after.zone, after.boundary) == ("mastered", False)


def test_a_boundary_task_whose_group_fails_keeps_its_zone_and_is_not_boundary() -> None:
    after = group_of(*visits((0, 2, 1, 1), (None, None, None, None), rules=Rules()))
    assert (after.zone, after.boundary) == ("boundary", False)


def test_a_probe_counts_as_a_visit() -> None:
    group = group_of(result(purpose="probe"), barrier(expected(purpose="probe")))
    assert (group.purpose, group.state.visits, group.zone) == ("probe", 1, "boundary")


def test_the_last_seal_of_an_epoch_carries_the_whole_state() -> None:
    steps = folded(
        [result("b"), barrier(expected("b")), result("a", step=2), barrier(expected("a", step=2), step=2, last=True)]
    )
    first, last = seals(steps)
    assert first.state == () and [task.task for task in last.state] == ["a", "b"]
    assert [group.task for group in last.groups] == ["a"]


def test_groups_of_a_seal_are_ordered_by_task() -> None:
    seal = seal_of(barrier(expected("c"), expected("a"), expected("b")))
    assert [group.task for group in seal.groups] == ["a", "b", "c"]


def test_events_of_an_older_learner_are_ignored() -> None:
    steps = folded([started(2), barrier(expected(), generation=1), result(), barrier(expected(), generation=2)])
    assert steps[1].seals == () and steps[1].state.counts.superseded == 1
    assert seals(steps)[0].groups[0].passed == (0, 1, 2, 1) and seals(steps)[0].generation == 2


def test_an_older_learner_that_starts_late_fences_nobody() -> None:
    steps = folded([started(2), started(1), barrier(generation=2)])
    assert steps[1].state.generation == 2 and len(seals(steps)) == 1


def test_the_first_valid_barrier_of_a_step_counts() -> None:
    steps = folded([barrier(expected("a")), barrier(expected("b")), barrier(step=2)])
    assert [[group.task for group in seal.groups] for seal in seals(steps)] == [["a"], []]
    assert seals(steps)[1].duplicate == 1


@pytest.mark.parametrize(
    "bad",
    [
        barrier(EXPECTED, partition=1, partitions=2),
        barrier(EXPECTED, partitions=0),
        replace(barrier(EXPECTED), rules="{}x"),
        barrier(EXPECTED, step=2),
        barrier(EXPECTED, epoch=0),
        barrier(EXPECTED, replace(EXPECTED, group="other")),
        barrier(replace(EXPECTED, k=0)),
        barrier(replace(EXPECTED, k=10**9)),
        barrier(replace(EXPECTED, turns_total=0)),
        barrier(replace(EXPECTED, purpose="evaluate")),
        barrier(replace(EXPECTED, task="x" * 2000)),
    ],
)
def test_an_invalid_barrier_is_refused_and_the_next_valid_one_counts(bad: object) -> None:
    steps = folded([result(), bad, barrier(expected())])
    assert len(steps[1].refusals) == 1 and steps[1].seals == ()
    assert seals(steps)[0].groups[0].passed == (0, 1, 2, 1)


def test_the_number_of_partitions_never_changes_within_a_run() -> None:
    steps = folded([barrier(), barrier(step=2, partitions=2)])
    assert "partitions" in steps[1].refusals[0].reason


def test_an_event_of_another_topic_is_refused() -> None:
    view = folded([result()])[0].measured
    (evolved,) = folded([view])
    assert "TaskMeasured" in evolved.refusals[0].reason


def test_an_offset_already_seen_changes_nothing() -> None:
    state = folded([result()])[0].state
    again = evolve(state, 0, result(passed=(2, 2, 2, 2)))
    assert again.state is state and again.measured is None and skip(state, 0) is state


def test_a_gap_in_the_offsets_stops_the_fold() -> None:
    with pytest.raises(OffsetGapError, match="from offset 0 to 1"):
        evolve(MeasureState(0), 1, result())
    with pytest.raises(OffsetGapError):
        skip(MeasureState(0), 3)


def test_an_undecodable_message_is_counted_and_takes_its_offset() -> None:
    state = skip(MeasureState(0), 0)
    assert state.next_offset == 1 and state.counts.refused == 1
    assert seals(folded([barrier()], state))[0].refused == 1


def test_every_count_starts_anew_after_a_seal() -> None:
    state = folded([result(), result(), result(k=9), barrier(expected())])[-1].state
    assert state.counts == Counts() and state.results == {}


def test_a_hostile_number_of_results_is_bounded() -> None:
    results: Grown[Shape, Result] = Grown()
    for number in range(MAX_OPEN_RESULTS):
        results = results.adding(
            Shape(str(number), "t", "train", 4, 2, "base"),
            Result(0, result(), outcome_of(result()), unvisited("t", "base")),
        )
    assert "more than" in evolve(MeasureState(0, results=results), 0, result()).refusals[0].reason
