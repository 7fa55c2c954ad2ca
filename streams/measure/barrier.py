"""Which barriers are valid. An invalid one is refused, since a seal can answer only what can be measured."""

from functools import lru_cache

from pydantic import ValidationError

from schemas.rollouts import BarrierReached, ExpectedGroup, Purpose
from schemas.rules import Rules
from streams.measure.seal import MAX_RULES_BYTES
from streams.measure.state import MeasureState

MAX_ATTEMPTS = 1024
MAX_TURNS = 1024
MAX_NAME_LENGTH = 1024


@lru_cache(maxsize=8)
def parsed_rules(text: str) -> Rules | None:
    """The rules of a barrier; None where they do not parse."""
    if len(text.encode()) > MAX_RULES_BYTES:
        return None
    try:
        return Rules.parse(text)
    except ValidationError:
        return None


def invalid(state: MeasureState, event: BarrierReached) -> str:
    """Why a barrier is invalid; empty where it is valid."""
    if event.partition != state.partition or event.partition >= event.partitions:
        return f"a barrier for partition {event.partition} of {event.partitions} stands on {state.partition}"
    if state.partitions not in (0, event.partitions):
        return f"a barrier for {event.partitions} partitions in a run of {state.partitions}"
    if event.step != state.step + 1 or event.epoch < max(state.epoch, 1):
        return f"epoch {event.epoch}, step {event.step} does not follow epoch {state.epoch}, step {state.step}"
    if len({group.task for group in event.expected}) < len(event.expected):
        return "a barrier expects two groups of one task"
    return next((reason for group in event.expected if (reason := _unmeasurable(group))), "")


def _unmeasurable(group: ExpectedGroup) -> str:
    if not 1 <= group.k <= MAX_ATTEMPTS or not 1 <= group.turns_total <= MAX_TURNS:
        return f"a barrier expects {group.k} slots of {group.turns_total} turns"
    if group.purpose not in (Purpose.TRAIN, Purpose.PROBE):
        return "a barrier expects a group that is neither to train on nor a probe"
    if max(len(group.group), len(group.task), len(group.category)) > MAX_NAME_LENGTH:
        return "a barrier expects a name that is too long"
    return ""
