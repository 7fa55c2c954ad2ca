"""Which values an event may hold.

Events are checked column by column, many of a kind at once, and of values that repeat each is looked at once. A check
is built from the event's type: every integer counts something and is not negative, every nested record is checked too,
and names that stand for a set of values are held to it.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache, lru_cache
from itertools import accumulate, chain, repeat
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from schemas.catalogue import BY_KIND
from schemas.envelope import Producer
from schemas.pool import Decision, RetirementRule, Settlement, TaskSet
from schemas.rollouts import FailureReason, Purpose, RolloutFinished, Slot, SlotStatus, TrajectoryRecorded
from schemas.rules import Rules
from schemas.seals import PartitionSealed, SealedGroup, Zone
from streams.audit.verify.batch import Batch, Check

_MOST_ATTEMPTS = 1024
_DIGEST = re.compile(r"(?:[0-9a-f]{64})?", re.ASCII)
_RATIO = re.compile(r"(?:[0-9]+/[1-9][0-9]*)?", re.ASCII)


def check_values(kind: str, batch: Batch) -> str | None:
    """What is wrong with the values of one of these events, or None."""
    wrong = _of_kind(kind)(batch)
    return wrong[1] if wrong else None


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
    names = {name: hint for name, hint in get_type_hints(record_type).items() if _is_field(record_type, name)}
    counts = [name for name, hint in names.items() if hint is int and name not in _MAY_BE_NEGATIVE]
    named = [(name, _NAMED[name]) for name, hint in names.items() if name in _NAMED and _is_plain(hint)]
    if record_type in _WITH_RULES:
        named.append(("rules", are_rules))
    one = [(name, _checker(hint)) for name, hint in names.items() if _is_record(hint)]
    many = [(name, _checker(get_args(hint)[0])) for name, hint in names.items() if _is_records(hint)]

    def check(batch: Batch) -> tuple[int, str] | None:
        for name in counts:
            if min(batch[name], default=0) < 0:
                return _first(name, batch[name], lambda value: value < 0, "is {}")
        for name, allowed in named:
            if wrong := {value for value in set(batch[name]) if not allowed(value)}:
                return _first(name, batch[name], wrong.__contains__, "is {!r:.82}")
        for name, inner in one:
            if found := inner(batch.part(name)):
                return found[0], f"{name}: {found[1]}"
        for name, inner in many:
            if found := inner(batch.items(name)):
                owner, number = _owner(batch.counts(name), found[0])
                return owner, f"{name}, number {number}: {found[1]}"
        return special(batch) if special else None

    return check


def _first(name: str, column: Sequence[Any], is_wrong: Callable[[Any], bool], told: str) -> tuple[int, str]:
    place = next(place for place, value in enumerate(column) if is_wrong(value))
    return place, f"{name} {told.format(column[place])}"


def _owner(counts: Sequence[int], place: int) -> tuple[int, int]:
    """Whose item stands at a place among all items, and its number among those of its record."""
    ends = list(accumulate(counts))
    owner = next(number for number, end in enumerate(ends) if place < end)
    return owner, place - (ends[owner] - counts[owner])


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


def _slots(batch: Batch) -> tuple[int, str] | None:
    outcomes = map(tuple, batch["outcomes"])
    shown = list(
        zip(batch["status"], batch["reason"], batch["turns_passed"], batch["turns_total"], outcomes, strict=True)
    )
    wrong = {slot: found for slot in set(shown) if (found := _slot(*slot))}
    if wrong:
        return next((place, wrong[slot]) for place, slot in enumerate(shown) if slot in wrong)
    if all(map(_hash, set(batch["trajectory"]))):
        return None
    return next(
        place for place, value in enumerate(batch["trajectory"]) if not _hash(value)
    ), "its trajectory is no sha256"


def _slot(status: str, reason: str | None, passed: int, total: int, outcomes: Sequence[bool]) -> str | None:
    if not 0 <= passed <= total:
        return f"{passed} of {total} turns passed"
    if status == _FINISHED:
        if reason:
            return "it is finished and has a reason to have failed"
        if sum(outcomes) != passed or len(outcomes) > total or not all(outcomes[:passed]):
            return f"{passed} turns passed, and the outcomes turn by turn say otherwise"
        return None if len(outcomes) - passed < 2 else "turns were judged after a failed one"
    if status != _FAILED or reason not in _REASONS:
        return f"status {status[:40]!r} with reason {str(reason)[:40]!r}"
    return None


def _spread_over(values: Iterable[Any], counts: Iterable[int]) -> Iterator[Any]:
    """A record's value for each of its items."""
    return chain.from_iterable(map(repeat, values, counts))


def _rollout(batch: Batch) -> tuple[int, str] | None:
    for place, (count, k) in enumerate(zip(batch.counts("slots"), batch["k"], strict=True)):
        if count != k:
            return place, f"it has {count} slots and k is {k}"
    counts = batch.counts("slots")
    turns = zip(_spread_over(batch["turns_total"], counts), batch.items("slots")["turns_total"], strict=True)
    for place, (total, counted) in enumerate(turns):
        if counted != total:
            owner, number = _owner(counts, place)
            return owner, f"slots, number {number}: it counts {counted} turns where the group has {total}"
    return None


def _trajectories(batch: Batch) -> tuple[int, str] | None:
    columns = zip(batch["token_ids"], batch["logprobs"], batch["loss_mask"], strict=True)
    found = ((place, _trajectory(*row)) for place, row in enumerate(columns))
    return next(((place, wrong) for place, wrong in found if wrong), None)


def _trajectory(token_ids: Sequence[int], logprobs: Sequence[float], loss_mask: bytes) -> str | None:
    length = len(token_ids)
    if len(logprobs) != length or len(loss_mask) != length:
        return "token ids, log-probabilities and loss mask differ in length"
    if length and not (min(token_ids) >= 0 and max(loss_mask) <= 1):
        return "a token id is negative, or the loss mask holds more than 0 and 1"
    return None if all(map(math.isfinite, logprobs)) else "a log-probability is not finite"


def _sealed_groups(batch: Batch) -> tuple[int, str] | None:
    lists = [batch[name] for name in ("passed", "reasons", "policy_versions", "trajectories")]
    lengths = [list(map(len, column)) for column in lists]
    for place, of_one in enumerate(zip(*lengths, strict=True)):
        if len(set(of_one)) != 1:
            return place, "its lists differ in length"
    slots = list(zip(*map(chain.from_iterable, lists[:2]), _spread_over(batch["turns_total"], lengths[0]), strict=True))
    wrong = {slot: found for slot in set(slots) if (found := _sealed_slot(*slot))}
    if not wrong:
        return None
    place = next(place for place, slot in enumerate(slots) if slot in wrong)
    return _owner(lengths[0], place)[0], wrong[slots[place]]


def _sealed_slot(turns: int | None, reason: str, total: int) -> str | None:
    if (turns is None) != bool(reason) or not 0 <= (turns or 0) <= total:
        return f"a slot has {turns} of {total} turns and the reason {reason[:40]!r}"
    return None


def _sealed(batch: Batch) -> tuple[int, str] | None:
    numbers = zip(batch["partition"], batch["partitions"], batch["chunk"], batch["chunks"], strict=True)
    for place, (partition, partitions, chunk, chunks) in enumerate(numbers):
        if not (partition < partitions and chunk < chunks):
            return place, "its partition or chunk is beyond their number"
    return None


_WITH_RULES = frozenset([kind for kind in BY_KIND.values() if "rules" in {field.name for field in fields(kind)}])
_SPECIAL: dict[type[Any], Check] = {
    Slot: _slots,
    RolloutFinished: _rollout,
    TrajectoryRecorded: _trajectories,
    SealedGroup: _sealed_groups,
    PartitionSealed: _sealed,
}
