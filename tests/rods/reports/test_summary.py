import json
import random
from dataclasses import replace

import pytest

from rods.reports.summary import Moment, SummaryFold
from schemas.envelope import stamp
from schemas.topics import KINDS
from tests.rods.made_run import closed, evaluated, made_run, seal, sealed_group, summary_of

RUN = made_run()


WHOLE = summary_of(RUN)


def test_a_row_holds_what_the_events_of_its_epoch_say() -> None:
    row = WHOLE.epochs[1]
    assert row.epoch == 1
    assert row.progress_pool == 0.25
    assert row.progress_heldout == 0.5
    assert row.flat_share == 0.5
    assert row.zones == {"mastered": 0, "boundary": 1, "hard": 1, "none": 0}
    assert (row.seeds, row.variants_verified, row.injected) == (1, 2, 1)
    assert row.variants_rejected == {"duplicate": 2, "profile_distance": 1}
    assert row.retired == {}
    assert (row.pool_size, row.originals, row.variants, row.pool_digest) == (3, 2, 1, "digest-1")
    assert (row.groups_trained, row.steps, row.variants_trained) == (1, 1, 0)
    assert row.seconds == 17.0


def test_the_state_before_training_is_epoch_zero() -> None:
    row = WHOLE.epochs[0]
    assert (row.epoch, row.pool_digest, row.pool_size) == (0, "digest-0", 2)
    assert row.progress_heldout == 0.375
    assert row.progress_pool is None
    assert row.seconds is None


def test_a_variant_that_was_injected_and_trained_on_is_counted() -> None:
    assert [row.variants_trained for row in WHOLE.epochs] == [0, 0, 1]
    assert WHOLE.epochs[2].retired == {"burn_in": 1}


def test_a_probe_enters_no_train_figure() -> None:
    row = WHOLE.epochs[2]
    assert sum(row.zones.values()) == 3
    assert row.progress_pool == pytest.approx((1 + 1 / 4 + 1 / 16) / 3)


@pytest.mark.parametrize("seed", range(20))
def test_no_interleaving_across_topics_changes_the_summary(seed: int) -> None:
    """Within a topic the order holds; across topics nothing orders."""
    by_topic = [[event for event in RUN if type(event).KIND in kinds] for kinds in KINDS.values()]
    rng, mixed = random.Random(seed), []
    while queues := [queue for queue in by_topic if queue]:
        mixed.append(rng.choice(queues).pop(0))
    assert summary_of(mixed) == WHOLE


def test_a_second_delivery_changes_nothing() -> None:
    assert summary_of([event for event in RUN for _ in range(2)]) == WHOLE
    assert summary_of(RUN + RUN) == WHOLE


def test_events_that_tell_nothing_are_passed_over() -> None:
    fold = SummaryFold()
    fold.evolve(object())
    assert fold.rows() == ()
    assert fold.moment == Moment()


def test_a_summary_may_be_asked_at_any_time() -> None:
    fold = SummaryFold()
    for event in RUN:
        fold.evolve(event)
        fold.summary()
    assert fold.summary() == WHOLE


def test_the_moment_counts_the_groups_of_the_newest_step() -> None:
    fold = SummaryFold()
    for event in RUN:
        fold.evolve(event)
    assert fold.moment == Moment(epoch=2, step=2, groups=3, measured=1)
    assert fold.moment.in_flight == 2


def test_the_pools_rise_is_paired_over_the_tasks_it_started_with() -> None:
    uplift = next(uplift for uplift in WHOLE.rises if uplift.name == "pool at the start")
    assert (uplift.tasks, uplift.first_epoch, uplift.last_epoch) == (2, 1, 2)
    assert (uplift.first, uplift.last, uplift.rise) == (0.25, 0.625, 0.375)
    assert uplift.error == pytest.approx(0.125)
    assert uplift.errors == pytest.approx(3)


def test_the_held_out_rise_spans_the_first_and_the_last_evaluation() -> None:
    uplift = next(uplift for uplift in WHOLE.rises if uplift.name == "held out, temperature 1")
    assert (uplift.first_epoch, uplift.last_epoch, uplift.tasks) == (0, 2, 2)
    assert (uplift.first, uplift.last) == (0.375, 0.625)


def test_each_temperature_has_its_own_rise() -> None:
    greedy = [evaluated(0, 0.0, h1=0, h2=4), evaluated(2, 0.0, h1=4, h2=4)]
    stamped = [stamp(event, run_id="made", occurred_at=1, producer="learner") for event in greedy]
    names = [uplift.name for uplift in summary_of([*RUN, *stamped]).rises]
    assert names == ["pool at the start", "held out, temperature 0", "held out, temperature 1"]


def test_a_failed_slot_never_moves_a_mean() -> None:
    event = stamp(seal(sealed_group("a", 4, None, None)), run_id="r", occurred_at=1, producer="measure")
    row = summary_of([event]).epochs[0]
    assert (row.progress_pool, row.flat_share) == (1.0, 1.0)


def test_a_group_without_a_live_slot_is_in_no_share() -> None:
    event = stamp(seal(sealed_group("a", None, None, zone="none")), run_id="r", occurred_at=1, producer="measure")
    row = summary_of([event]).epochs[0]
    assert (row.progress_pool, row.flat_share, row.zones["none"]) == (None, None, 1)


def test_a_group_whose_seal_names_no_turns_is_in_no_mean() -> None:
    group = replace(sealed_group("a", 1), turns_total=0)
    row = summary_of([stamp(seal(group), run_id="r", occurred_at=1, producer="measure")]).epochs[0]
    assert (row.progress_pool, row.flat_share) == (None, None)


def test_chunks_and_partitions_of_a_step_add_up() -> None:
    one = seal(sealed_group("a", 4))
    chunks = [one, replace(one, chunk=1, groups=(sealed_group("b", 0),))]
    other = [*chunks, seal(sealed_group("c", 2), partition=1)]
    events = [stamp(event, run_id="r", occurred_at=1, producer="measure") for event in other]
    assert summary_of(events).epochs[0].progress_pool == 0.5


def test_the_lineage_counts_the_way_from_seed_to_retirement() -> None:
    assert WHOLE.lineage == {
        "originals_registered": 2,
        "heldout_registered": 2,
        "seeds_selected": 1,
        "seeds_done": 1,
        "variants_rejected": 3,
        "variants_verified": 2,
        "variants_waiting": 0,
        "tasks_injected": 1,
        "tasks_returned": 0,
        "variants_trained": 1,
        "tasks_retired": 1,
        "variants_in_pool": 0,
    }


def test_alarms_are_kept_in_words() -> None:
    assert WHOLE.alarms == ("epoch 2: starvation: nothing was injected",)


def test_the_document_is_plain_json() -> None:
    document = json.loads(json.dumps(WHOLE.document(), allow_nan=False))
    assert document["epochs"][1]["variants_rejected"] == {"duplicate": 2, "profile_distance": 1}
    assert document["rises"][0]["errors"] == pytest.approx(3)
    assert document["run_id"] == "made"


def test_steps_closed_in_two_generations_count_once() -> None:
    first = stamp(closed(1, 1, trained=1), run_id="r", occurred_at=1, producer="learner")
    again = stamp(replace(closed(1, 1, trained=1), generation=2), run_id="r", occurred_at=2, producer="learner")
    assert summary_of([first, again]).epochs[0].steps == 1
