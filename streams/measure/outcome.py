"""A group's slots, judged: which are live, and why the others are not. A failed slot has no reward, not a zero."""

from dataclasses import dataclass
from functools import lru_cache

from schemas.rollouts import FailureReason, RolloutFinished, Slot, SlotStatus
from schemas.seals import WindowGroup
from streams.exact import Moments, moments

DIGEST_LENGTH = 64
REASON_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """Slot by slot: turns passed or None, and the failure or empty."""

    group: str
    turns_total: int
    passed: tuple[int | None, ...]
    reasons: tuple[str, ...]

    @property
    def live(self) -> tuple[int, ...]:
        """The turns passed of the live slots."""
        return tuple([turns for turns in self.passed if turns is not None])

    @property
    def moments(self) -> Moments:
        return moments(self.live, self.turns_total)

    @property
    def window_group(self) -> WindowGroup:
        return WindowGroup(self.group, *self.moments)


def outcome_of(event: RolloutFinished) -> Outcome:
    """The outcome of a result. A slot with impossible values counts as failed."""
    reasons = tuple([failure_of(slot, event.turns_total) for slot in event.slots])
    passed = tuple([None if reason else slot.turns_passed for slot, reason in zip(event.slots, reasons, strict=True)])
    return Outcome(event.group, event.turns_total, passed, reasons)


def missing(group: str, k: int, turns_total: int) -> Outcome:
    """The outcome of a group that was expected and is absent."""
    return Outcome(group, turns_total, (None,) * k, (FailureReason.MISSING.value,) * k)


def failure_of(slot: Slot, turns_total: int) -> str:
    """Why a slot failed; empty where it is live."""
    if slot.status == SlotStatus.FAILED and slot.reason and _plausible(slot):
        return slot.reason[:REASON_LENGTH]
    if slot.status == SlotStatus.FINISHED and not slot.reason and _plausible(slot) and _consistent(slot, turns_total):
        return ""
    return FailureReason.IMPOSSIBLE.value


def _plausible(slot: Slot) -> bool:
    return (
        slot.tool_calls >= 0
        and slot.tokens >= 0
        and slot.latency >= 0
        and slot.policy_version >= 0
        and len(slot.trajectory) <= DIGEST_LENGTH
    )


def _consistent(slot: Slot, turns_total: int) -> bool:
    passed = slot.turns_passed
    return (
        slot.turns_total == turns_total
        and 0 <= passed <= turns_total
        and slot.outcomes in _possible_outcomes(turns_total)[passed]
    )


@lru_cache(maxsize=64)
def _possible_outcomes(turns_total: int) -> tuple[frozenset[tuple[bool, ...]], ...]:
    """By turns passed: an attempt ends at its first failed turn, so at most one failure follows the passed turns. One
    that a limit ended has none."""
    return tuple(
        [
            frozenset({(True,) * passed, ((True,) * passed + (False,))[:turns_total]})
            for passed in range(turns_total + 1)
        ]
    )
