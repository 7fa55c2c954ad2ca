"""A group's slots, judged: which are live, and why the others are not. A failed slot has no reward, not a zero."""

from dataclasses import dataclass
from functools import lru_cache

from schemas.rollouts import FailureReason, RolloutFinished, Slot, SlotStatus
from schemas.seals import WindowGroup
from streams.measure.exact import Moments, moments

DIGEST_LENGTH = 64
REASON_LENGTH = 64
PossibleOutcomes = tuple[frozenset[tuple[bool, ...]], ...]

_FINISHED, _FAILED = SlotStatus.FINISHED.value, SlotStatus.FAILED.value
_IMPOSSIBLE = FailureReason.IMPOSSIBLE.value


@dataclass(frozen=True, slots=True)
class Outcome:
    """Slot by slot: turns passed or None, the failure or empty, policy version, digest of the trajectory. moments: of
    the live slots.

    What a seal takes from the slots is here, since to walk them again a step later cost as much as judging them.
    """

    group: str
    passed: tuple[int | None, ...]
    reasons: tuple[str, ...]
    moments: Moments
    policy_versions: tuple[int, ...]
    trajectories: tuple[str, ...]

    @property
    def window_group(self) -> WindowGroup:
        return WindowGroup(self.group, *self.moments)


def outcome_of(event: RolloutFinished) -> Outcome:
    """The outcome of a result. A slot with impossible values counts as failed."""
    total, possible = event.turns_total, _possible_outcomes(event.turns_total)
    reasons = tuple([failure_of(slot, total, possible) for slot in event.slots])
    passed = tuple([None if reason else slot.turns_passed for slot, reason in zip(event.slots, reasons, strict=True)])
    return Outcome(
        event.group,
        passed,
        reasons,
        moments([turns for turns in passed if turns is not None], total),
        tuple([slot.policy_version for slot in event.slots]),
        tuple([slot.trajectory[:DIGEST_LENGTH] for slot in event.slots]),
    )


def missing(group: str, k: int, turns_total: int) -> Outcome:
    """The outcome of a group that was expected and is absent."""
    reasons = (FailureReason.MISSING.value,) * k
    return Outcome(group, (None,) * k, reasons, moments((), turns_total), (0,) * k, ("",) * k)


def failure_of(slot: Slot, turns_total: int, possible: PossibleOutcomes) -> str:
    """Why a slot failed; empty where it is live."""
    if not (
        slot.tool_calls >= 0
        and slot.tokens >= 0
        and slot.latency >= 0
        and slot.policy_version >= 0
        and len(slot.trajectory) <= DIGEST_LENGTH
    ):
        return _IMPOSSIBLE
    status, reason, passed = slot.status, slot.reason, slot.turns_passed
    if status == _FAILED and reason:
        return reason[:REASON_LENGTH]
    if status == _FINISHED and not reason and slot.turns_total == turns_total and 0 <= passed <= turns_total:
        return "" if slot.outcomes in possible[passed] else _IMPOSSIBLE
    return _IMPOSSIBLE


@lru_cache(maxsize=64)
def _possible_outcomes(turns_total: int) -> PossibleOutcomes:
    """By turns passed: an attempt ends at its first failed turn, so at most one failure follows the passed turns. One
    that a limit ended has none."""
    return tuple(
        [
            frozenset({(True,) * passed, ((True,) * passed + (False,))[:turns_total]})
            for passed in range(turns_total + 1)
        ]
    )
