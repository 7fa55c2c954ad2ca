"""Which values an event may hold. Checks on plain records, as a scan decodes them: no instance is made.

A checker gives what is wrong in a few words, or None. It is built from the event's type once: every integer counts
something and is not negative, every nested record is checked too, and names that stand for a set of values are held
to it.
"""

import math
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from schemas.catalogue import BY_KIND
from schemas.envelope import Producer
from schemas.pool import Decision, RetirementRule, Settlement, TaskSet
from schemas.rollouts import FailureReason, Purpose, RolloutFinished, Slot, SlotStatus, TrajectoryRecorded
from schemas.rules import Rules
from schemas.seals import PartitionSealed, SealedGroup, Zone

Check = Callable[[dict[str, Any]], str | None]
_MOST_ATTEMPTS = 1024
_DIGEST = re.compile(r"(?:[0-9a-f]{64})?", re.ASCII)
_RATIO = re.compile(r"(?:[0-9]+/[1-9][0-9]*)?", re.ASCII)


def check_values(kind: str, record: dict[str, Any]) -> str | None:
    """What is wrong with an event's values, or None."""
    return _of_kind(kind)(record)


@cache
def _of_kind(kind: str) -> Check:
    return _checker(BY_KIND[kind])


def _one_of(values: type[StrEnum], *more: str) -> Callable[[Any], bool]:
    allowed = frozenset([value.value for value in values]) | set(more)
    return lambda value: value in allowed


def _share(value: Any) -> bool:
    """A number from 0 to 1, exact as text or not."""
    if isinstance(value, str):
        above, slash, below = value.partition("/")
        return bool(_RATIO.fullmatch(value)) and len(value) <= 200 and (not slash or int(above) <= int(below))
    return value is None or 0.0 <= value <= 1.0


def _spread(value: Any) -> bool:
    return bool(_RATIO.fullmatch(value)) if isinstance(value, str) else value is None or 0.0 <= value < math.inf


def _hash(value: Any) -> bool:
    return bool(_DIGEST.fullmatch(value))


@lru_cache(maxsize=64)
def are_rules(text: str) -> bool:
    """Whether a text is rules, in their canonical form."""
    try:
        return Rules.parse(text).canonical() == text
    except ValidationError:
        return False


_NAMED: dict[str, Callable[[Any], bool]] = {
    "purpose": _one_of(Purpose),
    "zone": _one_of(Zone, ""),
    "task_set": _one_of(TaskSet),
    "outcome": _one_of(Settlement),
    "rule": _one_of(RetirementRule),
    "decision": _one_of(Decision),
    "producer": _one_of(Producer),
    "mean": _share,
    "phi": _share,
    "progress": _share,
    "clip_share": _share,
    "variance": _spread,
    "temperature": _spread,
    "digest": _hash,
    "sha256": _hash,
    "previous_digest": _hash,
    "selection_digest": _hash,
    "pool_digest": _hash,
    "content": _hash,
    "k": lambda value: 0 < value <= _MOST_ATTEMPTS,
    "turns_total": lambda value: value > 0,
}
_MAY_BE_NEGATIVE = frozenset({"seed"})


def _checker(record_type: type[Any]) -> Check:
    special = _SPECIAL.get(record_type)
    if record_type is Slot:
        return _slot
    names = {name: hint for name, hint in get_type_hints(record_type).items() if _is_field(record_type, name)}
    counts = [name for name, hint in names.items() if hint is int and name not in _MAY_BE_NEGATIVE]
    named = [(name, _NAMED[name]) for name, hint in names.items() if name in _NAMED and _is_plain(hint)]
    if record_type in _WITH_RULES:
        named.append(("rules", are_rules))
    one = [(name, _checker(hint)) for name, hint in names.items() if _is_record(hint)]
    many = [(name, _checker(get_args(hint)[0])) for name, hint in names.items() if _is_records(hint)]

    def check(record: dict[str, Any]) -> str | None:
        for name in counts:
            if record[name] < 0:
                return f"{name} is {record[name]}"
        for name, allowed in named:
            if not allowed(record[name]):
                return f"{name} is {str(record[name])[:80]!r}"
        for name, inner in one:
            if (wrong := inner(record[name])) is not None:
                return f"{name}: {wrong}"
        for name, inner in many:
            for number, item in enumerate(record[name]):
                if (wrong := inner(item)) is not None:
                    return f"{name}, number {number}: {wrong}"
        return special(record) if special else None

    return check


def _is_field(record_type: type[Any], name: str) -> bool:
    return name in {field.name for field in fields(record_type)}


def _is_plain(hint: Any) -> bool:
    return not _is_record(hint) and get_origin(hint) not in (tuple, dict)


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _is_records(hint: Any) -> bool:
    return get_origin(hint) is tuple and _is_record(get_args(hint)[0])


_FINISHED = SlotStatus.FINISHED.value
_FAILED = SlotStatus.FAILED.value
_REASONS = frozenset([reason.value for reason in FailureReason])


def _slot(slot: dict[str, Any]) -> str | None:
    if min(slot["tool_calls"], slot["tokens"], slot["latency"], slot["policy_version"]) < 0:
        return "a count is negative"
    passed, total, outcomes = slot["turns_passed"], slot["turns_total"], slot["outcomes"]
    if not 0 <= passed <= total:
        return f"{passed} of {total} turns passed"
    if slot["trajectory"] and not _hash(slot["trajectory"]):
        return "its trajectory is no sha256"
    if slot["status"] == _FINISHED:
        if slot["reason"]:
            return "it is finished and has a reason to have failed"
        if outcomes.count(True) != passed or len(outcomes) > total or False in outcomes[:passed]:
            return f"{passed} turns passed, and the outcomes turn by turn say otherwise"
        return None if len(outcomes) - passed < 2 else "turns were judged after a failed one"
    if slot["status"] != _FAILED or slot["reason"] not in _REASONS:
        return f"status {slot['status'][:40]!r} with reason {str(slot['reason'])[:40]!r}"
    return None


def _rollout(record: dict[str, Any]) -> str | None:
    if len(record["slots"]) != record["k"]:
        return f"it has {len(record['slots'])} slots and k is {record['k']}"
    total = record["turns_total"]
    for number, slot in enumerate(record["slots"]):
        if slot["turns_total"] != total:
            return f"slots, number {number}: it counts {slot['turns_total']} turns where the group has {total}"
    return None


def _trajectory(record: dict[str, Any]) -> str | None:
    length = len(record["token_ids"])
    if len(record["logprobs"]) != length or len(record["loss_mask"]) != length:
        return "token ids, log-probabilities and loss mask differ in length"
    if length and not (min(record["token_ids"]) >= 0 and max(record["loss_mask"]) <= 1):
        return "a token id is negative, or the loss mask holds more than 0 and 1"
    return None if all(map(math.isfinite, record["logprobs"])) else "a log-probability is not finite"


def _sealed_group(record: dict[str, Any]) -> str | None:
    passed, reasons, total = record["passed"], record["reasons"], record["turns_total"]
    if not len(passed) == len(reasons) == len(record["policy_versions"]) == len(record["trajectories"]):
        return "its lists differ in length"
    for turns, reason in zip(passed, reasons, strict=True):
        if (turns is None) != bool(reason) or not 0 <= (turns or 0) <= total:
            return f"a slot has {turns} of {total} turns and the reason {reason[:40]!r}"
    return None


def _sealed(record: dict[str, Any]) -> str | None:
    if not (record["partition"] < record["partitions"] and record["chunk"] < record["chunks"]):
        return "its partition or chunk is beyond their number"
    return None


_WITH_RULES = frozenset([kind for kind in BY_KIND.values() if "rules" in {field.name for field in fields(kind)}])
_SPECIAL: dict[type[Any], Check] = {
    RolloutFinished: _rollout,
    TrajectoryRecorded: _trajectory,
    SealedGroup: _sealed_group,
    PartitionSealed: _sealed,
}
