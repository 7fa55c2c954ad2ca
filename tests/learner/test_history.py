from typing import Any

import pytest

from learner.history import History
from schemas.envelope import stamp
from schemas.epochs import (
    AlarmRaised,
    EpochClosed,
    EpochOpened,
    LearnerStarted,
    PlannedGroup,
    PolicyEvaluated,
    PolicyPublished,
    StepOpened,
)
from schemas.pool import SeedSettled


def history_of(*events: Any, run: str = "run") -> History:
    history = History()
    for event in events:
        history.evolve(history.next_offset, stamp(event, run_id=run, occurred_at=1, producer="learner"))
    return history


def step(number: int, epoch: int = 1, generation: int = 1, policy: int = 0) -> StepOpened:
    return StepOpened(generation, epoch, number, (PlannedGroup("g", "t", "train"),), 4, policy, False)


def epoch(number: int, generation: int = 1, partitions: int = 2) -> EpochOpened:
    return EpochOpened(generation, number, "{}", partitions, "", {}, "", "", "")


def test_an_empty_log_has_no_run_no_learner_and_no_policy() -> None:
    history = History()
    assert (history.run_id, history.generation, history.newest_policy, history.last_closed_step) == ("", 0, -1, 0)
    assert history.first_step_of(1) == 1


def test_the_first_nonce_of_a_generation_wins() -> None:
    history = history_of(LearnerStarted(1, "first"), LearnerStarted(1, "second"))
    assert (history.generation, history.claims) == (1, {1: "first"})


def test_the_first_fact_of_a_key_wins() -> None:
    history = history_of(step(1, policy=3), step(1, policy=4), epoch(1), epoch(1, partitions=9))
    assert history.steps_opened[1].policy_version == 3
    assert history.epochs_opened[1].partitions == 2


def test_what_an_older_learner_says_after_a_newer_one_started_is_ignored() -> None:
    history = history_of(LearnerStarted(1, "a"), step(1), LearnerStarted(2, "b"), step(2), EpochClosed(1, 1, 1, "d"))
    assert set(history.steps_opened) == {1}
    assert history.epochs_closed == {}


def test_an_older_learners_claim_does_not_take_the_run_back() -> None:
    assert history_of(LearnerStarted(3, "c"), LearnerStarted(2, "b")).generation == 3


def test_offsets_already_seen_change_nothing() -> None:
    history = history_of(step(1))
    history.evolve(0, stamp(step(2), run_id="other", occurred_at=1, producer="learner"))
    assert (set(history.steps_opened), history.run_id) == ({1}, "run")


def test_steps_of_an_epoch_follow_those_of_the_epochs_before_it() -> None:
    history = history_of(step(1), step(2), step(3, epoch=2))
    assert [history.first_step_of(number) for number in (1, 2, 3)] == [1, 3, 4]


def test_policies_and_evaluations_are_kept_by_version() -> None:
    evaluated = PolicyEvaluated(1, 2, "heldout", 1.0, 1, ())
    history = history_of(PolicyPublished(1, 0, "", ""), PolicyPublished(1, 2, "x", ""), evaluated)
    assert history.newest_policy == 2
    assert history.evaluated == {("2", "heldout", "1.0")}


def test_alarms_are_passed_over_and_another_topics_event_is_an_error() -> None:
    history_of(AlarmRaised(1, "starvation", 1, 1, ""))
    with pytest.raises(TypeError, match=r"rods\.epochs carries no SeedSettled"):
        history_of(SeedSettled(0, "s", 1, 1, "done", 1))
