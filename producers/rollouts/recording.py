"""From a group's outcome to the events that record it: its trajectories, then one RolloutFinished."""

from dataclasses import dataclass

from producers.rollouts.attempt import AttemptResult
from schemas.codec import encode
from schemas.envelope import E, Producer, derive
from schemas.identity import trajectory_digest
from schemas.rollouts import FailureReason, GroupRequested, RolloutFinished, Slot, SlotStatus, TrajectoryRecorded
from schemas.rules import canonical_json

TRAJECTORY_BYTES = 7_864_320  # 7.5 MiB, so that an event and its batch stay below the 8 MiB a topic takes


@dataclass(frozen=True, slots=True)
class Recording:
    """Encoded events of one run of a group, in the order they must be acknowledged in."""

    trajectories: tuple[bytes, ...]
    finished: bytes


def record(request: GroupRequested, execution: str, attempts: tuple[AttemptResult, ...]) -> Recording:
    """The events of a group that was run. A trajectory too large to travel is a failed slot without one."""
    trajectories: list[bytes] = []
    slots: list[Slot] = []
    for attempt in attempts:
        trajectory = _trajectory(request, execution, attempt)
        encoded = encode(_derived(trajectory, request)) if attempt.messages else b""
        if len(encoded) > TRAJECTORY_BYTES:
            slots.append(_slot(request, attempt, "", FailureReason.TOO_LARGE))
            continue
        slots.append(_slot(request, attempt, _digest(trajectory) if encoded else "", attempt.failure))
        if encoded:
            trajectories.append(encoded)
    return Recording(tuple(trajectories), encode(_derived(_finished(request, execution, tuple(slots)), request)))


def record_failure(request: GroupRequested, execution: str, reason: FailureReason) -> Recording:
    """The events of a group that could not be run: K failed slots, no trajectory."""
    slot = Slot(
        status=SlotStatus.FAILED,
        turns_passed=0,
        turns_total=request.turns_total,
        outcomes=(),
        tool_calls=0,
        tokens=0,
        latency=0,
        policy_version=request.policy_version,
        trajectory="",
        reason=reason,
    )
    return Recording((), encode(_derived(_finished(request, execution, (slot,) * request.k), request)))


def _trajectory(request: GroupRequested, execution: str, attempt: AttemptResult) -> TrajectoryRecorded:
    said = [{"role": m.role.value, "content": m.content, "calls": m.calls} for m in attempt.messages]
    return TrajectoryRecorded(
        group=request.group,
        execution=execution,
        attempt=attempt.attempt,
        epoch=request.epoch,
        step=request.step,
        task=request.task,
        policy_version=_version(request, attempt),
        token_ids=attempt.token_ids,
        logprobs=attempt.logprobs,
        loss_mask=attempt.loss_mask,
        messages=canonical_json(said),
    )


def _slot(request: GroupRequested, attempt: AttemptResult, trajectory: str, failure: FailureReason | None) -> Slot:
    return Slot(
        status=SlotStatus.FAILED if failure else SlotStatus.FINISHED,
        turns_passed=0 if failure else attempt.turns_passed,
        turns_total=request.turns_total,
        outcomes=attempt.outcomes,
        tool_calls=attempt.tool_calls,
        tokens=attempt.tokens,
        latency=round(attempt.latency_ms * 1000),
        policy_version=_version(request, attempt),
        trajectory=trajectory,
        reason=failure,
    )


def _finished(request: GroupRequested, execution: str, slots: tuple[Slot, ...]) -> RolloutFinished:
    return RolloutFinished(
        group=request.group,
        execution=execution,
        epoch=request.epoch,
        step=request.step,
        task=request.task,
        purpose=request.purpose,
        category=request.category,
        k=request.k,
        turns_total=request.turns_total,
        slots=slots,
    )


def _version(request: GroupRequested, attempt: AttemptResult) -> int:
    return attempt.policy_version if attempt.policy_version >= 0 else request.policy_version


def _digest(trajectory: TrajectoryRecorded) -> str:
    return trajectory_digest(trajectory.token_ids, trajectory.logprobs, trajectory.loss_mask, trajectory.messages)


def _derived(event: E, request: GroupRequested) -> E:
    return derive(event, request.envelope, Producer.ROLLOUT, request.envelope.correlation_id or request.group)
