import json
from typing import Any

import pytest

from producers.rollouts import recording
from producers.rollouts.attempt import AttemptResult
from producers.rollouts.recording import record, record_failure
from schemas.codec import decode
from schemas.conversation import Message, Role
from schemas.envelope import stamp
from schemas.identity import trajectory_digest
from schemas.rollouts import FailureReason, GroupRequested, SlotStatus

REQUEST = stamp(
    GroupRequested(1, 1, 2, "t", "g", "train", 2, 3, "base", 5, 1.0, 1, 0, 9),
    run_id="run",
    occurred_at=77,
    producer="learner",
)


def attempt(number: int, **changes: Any) -> AttemptResult:
    values: dict[str, Any] = {
        "attempt": number,
        "turns_passed": 1,
        "turns_total": 3,
        "outcomes": (True, False),
        "tool_calls": 2,
        "tokens": 2,
        "latency_ms": 1.5,
        "policy_version": 5,
        "token_ids": (1, 2, 3),
        "logprobs": (0.0, -0.5, -0.25),
        "loss_mask": b"\x00\x01\x01",
        "messages": (Message(Role.USER, "do"), Message(Role.ASSISTANT, "", ("f()",))),
    }
    return AttemptResult(**(values | changes))


def test_slots_name_the_digests_of_their_trajectories() -> None:
    recorded = record(REQUEST, "x", (attempt(0), attempt(1)))
    result = decode(recorded.finished)
    assert [slot.status for slot in result.slots] == [SlotStatus.FINISHED] * 2
    for data, slot in zip(recorded.trajectories, result.slots, strict=True):
        event = decode(data)
        assert slot.trajectory == trajectory_digest(event.token_ids, event.logprobs, event.loss_mask, event.messages)
        assert json.loads(event.messages)[1] == {"role": "assistant", "content": "", "calls": ["f()"]}
        assert (event.envelope.occurred_at, event.envelope.causation_id) == (77, REQUEST.envelope.event_id)
    assert result.slots[0].latency == 1500


def test_a_failed_attempt_has_a_reason_and_no_reward() -> None:
    failed_attempt = attempt(1, failure=FailureReason.CHECKER, turns_passed=0, policy_version=-1, messages=())
    recorded = record(REQUEST, "x", (attempt(0), failed_attempt))
    slot = decode(recorded.finished).slots[1]
    assert (slot.status, slot.reason, slot.turns_passed) == ("failed", "checker_error", 0)
    assert (slot.policy_version, slot.trajectory) == (5, "")
    assert len(recorded.trajectories) == 1


def test_a_trajectory_too_large_to_travel_is_a_failed_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "TRAJECTORY_BYTES", 2_000)
    big = attempt(1, messages=(Message(Role.USER, "x" * 3_000),))
    recorded = record(REQUEST, "x", (attempt(0), big))
    slot = decode(recorded.finished).slots[1]
    assert (slot.status, slot.reason, slot.turns_passed, slot.trajectory) == ("failed", "too_large", 0, "")
    assert len(recorded.trajectories) == 1


def test_text_that_is_no_valid_unicode_is_recorded() -> None:
    recorded = record(REQUEST, "x", (attempt(0, messages=(Message(Role.ASSISTANT, "\ud800"),)), attempt(1)))
    assert json.loads(decode(recorded.trajectories[0]).messages)[0]["content"] == "\ud800"


def test_a_group_that_could_not_be_run_has_k_failed_slots() -> None:
    recorded = record_failure(REQUEST, "x", FailureReason.POLICY)
    result = decode(recorded.finished)
    assert [slot.reason for slot in result.slots] == [FailureReason.POLICY] * 2
    assert recorded.trajectories == ()
