from dataclasses import replace
from typing import Any

import pytest

from learner.in_flight import InFlight
from learner.samples import Key, StepBatch, TrajectoryBuffer, awaited, step_batch
from schemas.identity import trajectory_digest
from schemas.rollouts import Purpose, TrajectoryRecorded
from schemas.seals import SealedGroup, TaskState

VERSION = 5


def trajectory(
    attempt: int, group: str = "g", execution: str = "e", step: int = 1, **changes: Any
) -> TrajectoryRecorded:
    made = TrajectoryRecorded(
        group=group,
        execution=execution,
        attempt=attempt,
        epoch=1,
        step=step,
        task="t",
        policy_version=VERSION,
        token_ids=(1, 2, 3 + attempt),
        logprobs=(0.0, -0.5, -0.25),
        loss_mask=b"\x00\x01\x01",
        messages="[]",
    )
    return replace(made, **changes)


def sha256(recorded: TrajectoryRecorded) -> str:
    return trajectory_digest(recorded.token_ids, recorded.logprobs, recorded.loss_mask, recorded.messages)


def sealed(*passed: int | None, versions: tuple[int, ...] | None = None, **changes: Any) -> SealedGroup:
    """A group of two turns, whose slots passed so many of them; None: failed."""
    made = SealedGroup(
        group="g",
        task="t",
        purpose=Purpose.TRAIN,
        category="base",
        execution="e",
        turns_total=2,
        passed=passed,
        reasons=("",) * len(passed),
        policy_versions=versions or (VERSION,) * len(passed),
        trajectories=tuple(sha256(trajectory(attempt)) for attempt in range(len(passed))),
        zone="boundary",
        boundary=True,
        state=TaskState("t", "base", (), 1, 0, 0),
    )
    return replace(made, **changes)


def held(*recorded: TrajectoryRecorded) -> dict[Key, TrajectoryRecorded]:
    return {(one.group, one.execution, one.attempt): one for one in recorded}


def batch(group: SealedGroup, found: dict[Key, TrajectoryRecorded] | None = None, staleness: int = 1) -> StepBatch:
    whole = held(*map(trajectory, range(len(group.passed))))
    return step_batch([group], whole if found is None else found, VERSION, InFlight(1, staleness))


def test_every_live_attempt_of_a_group_with_variance_is_a_sample() -> None:
    made = batch(sealed(0, 1, 2, None))
    assert (made.measured, made.trained, made.flat, made.missing, made.unmatched) == (1, 1, 0, 0, 0)
    assert [sample.token_ids for sample in made.samples] == [(1, 2, 3), (1, 2, 4), (1, 2, 5)]
    assert [sample.advantage for sample in made.samples] == pytest.approx([-1.2247, 0.0, 1.2247], abs=1e-3)
    assert [list(sample.loss_mask) for sample in made.samples] == [[False, True, True]] * 3
    assert made.progress == 0.5


def test_a_group_without_variance_is_counted_and_not_trained_on() -> None:
    made = batch(sealed(1, 1, None, 1))
    assert (made.measured, made.flat, made.trained, made.samples) == (1, 1, 0, ())


def test_a_group_without_a_live_slot_is_missing_and_has_no_progress() -> None:
    made = batch(sealed(None, None, execution="", trajectories=("", "")))
    assert (made.measured, made.missing, made.flat, made.progress) == (0, 1, 0, None)


def test_a_failed_slot_moves_no_mean() -> None:
    assert batch(sealed(1, None, 2, None)).progress == batch(sealed(1, 2)).progress == 0.75


def test_a_missing_trajectory_is_measured_and_counted_and_not_trained_on() -> None:
    made = batch(sealed(0, 2), held(trajectory(1)))
    assert (made.measured, made.trained, made.unmatched, len(made.samples)) == (1, 1, 1, 1)
    assert made.samples[0].advantage == batch(sealed(0, 2)).samples[1].advantage


@pytest.mark.parametrize(
    "other",
    [
        trajectory(1, execution="loser"),
        trajectory(1, group="another"),
        trajectory(1, token_ids=(1, 2, 9)),
        trajectory(1, logprobs=(0.0, -0.5, -0.5)),
        trajectory(1, loss_mask=b"\x01\x01\x01"),
        trajectory(1, messages="[ ]"),
    ],
    ids=["execution", "group", "tokens", "logprobs", "mask", "messages"],
)
def test_only_the_trajectory_that_the_winning_execution_named_is_trained_on(other: TrajectoryRecorded) -> None:
    made = batch(sealed(0, 2), held(trajectory(0), other))
    assert (made.unmatched, len(made.samples)) == (1, 1)


@pytest.mark.parametrize(
    "unsound",
    [
        trajectory(1, logprobs=(0.0, float("nan"), 0.0)),
        trajectory(1, logprobs=(0.0,)),
        trajectory(1, loss_mask=b"\x01"),
    ],
    ids=["not a number", "too few log-probabilities", "too short a mask"],
)
def test_an_unsound_trajectory_does_not_reach_the_weights_though_its_sha256_is_right(
    unsound: TrajectoryRecorded,
) -> None:
    group = sealed(0, 2, trajectories=(sha256(trajectory(0)), sha256(unsound)))
    made = batch(group, held(trajectory(0), unsound))
    assert (made.unmatched, len(made.samples)) == (1, 1)


def test_an_attempt_by_too_old_a_policy_is_not_trained_on() -> None:
    made = batch(sealed(0, 1, 2, versions=(VERSION, VERSION - 1, VERSION - 2)))
    assert (made.trained, made.stale, len(made.samples)) == (1, 0, 2)


def test_a_group_of_stale_attempts_alone_is_stale() -> None:
    made = batch(sealed(0, 2, versions=(VERSION - 1, VERSION - 2)), staleness=0)
    assert (made.trained, made.stale, made.unmatched, made.samples) == (0, 1, 0, ())


def test_an_attempt_that_said_nothing_is_no_sample() -> None:
    silent = trajectory(1, loss_mask=b"\x00\x00\x00")
    group = sealed(0, 2, trajectories=(sha256(trajectory(0)), sha256(silent)))
    made = batch(group, held(trajectory(0), silent))
    assert (made.unmatched, len(made.samples)) == (0, 1)


def test_probes_are_not_trained_on() -> None:
    made = batch(sealed(0, 2, purpose=Purpose.PROBE))
    assert (made.measured, made.samples) == (0, ())


def test_only_live_attempts_of_train_groups_with_variance_are_waited_for() -> None:
    groups = [sealed(0, None, 2), sealed(1, 1, group="flat"), sealed(0, 2, group="probe", purpose=Purpose.PROBE)]
    assert awaited(groups) == {("g", "e", 0), ("g", "e", 2)}


def test_the_buffer_keeps_the_first_of_a_key_from_the_open_step_on() -> None:
    buffer = TrajectoryBuffer()
    buffer.open(2)
    first, second = trajectory(0, step=2), trajectory(0, step=2, messages="other")
    for event in (trajectory(1, step=1), first, second, trajectory(2, step=3)):
        buffer.evolve(event)
    assert buffer.held == held(first, trajectory(2, step=3))
    buffer.open(3)
    assert buffer.held == held(trajectory(2, step=3))
