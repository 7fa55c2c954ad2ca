"""The exact form of a seal: hundreds of groups and, at the end of an epoch, the state of every task of a partition.

As in `verify_form`, what does not match is not judged; it is decoded.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from schemas.codec import HEADER_BYTES, MAGIC, fingerprint, schema_text, schema_versions
from schemas.rollouts import Purpose
from schemas.seals import PartitionSealed, Zone
from streams.audit.verify.grammar import (
    COUNT,
    DIGEST,
    FLAG,
    POSITIVE,
    SMALL_COUNT,
    count_of,
    envelope_pattern,
    long_count,
    one_of,
    text_pattern,
)
from streams.audit.verify.values import are_rules

_MOST_TURNS = 16
_MOST_WINDOW = 8
_EMPTY = b"\\x00"


@dataclass(frozen=True, slots=True)
class Seal:
    """A well-formed one: its natural key, and its run and id as they are written. groups: where those that were asked
    for begin."""

    natural: tuple[bytes, ...]
    run: bytes
    event_id: bytes
    groups: tuple[int, ...]


class SealForm:
    """Recognises seals of the newest schema version."""

    def __init__(self) -> None:
        kind = PartitionSealed.KIND
        self._header = MAGIC + fingerprint(schema_text(kind, schema_versions(kind)[-1]))

    def match(self, value: bytes, tasks: tuple[bytes, ...] = ()) -> Seal | None:
        """The seal, where every byte is as it should be. tasks: whose groups are asked for, as Avro writes them."""
        if value[:HEADER_BYTES] != self._header or (head := _HEAD.match(value, HEADER_BYTES)) is None:
            return None
        epoch, step, partition, partitions, chunk, chunks = map(count_of, head.groups())
        end = _after_rules(value, head.end())
        middle = _MIDDLE.match(value, end) if end else None
        if middle is None or not (partition < partitions and chunk < chunks):
            return None
        groups: list[int] = []
        at = _after_groups(value, middle.end(), count_of(middle["groups"]), tasks, groups)
        at = _after_states(value, at) if at else 0
        counts = _COUNTS.match(value, at) if at else None
        tail = envelope_pattern().fullmatch(value, counts.end()) if counts else None
        if tail is None:
            return None
        natural = tuple([b"%d" % part for part in (epoch, step, partition, chunk)])
        return Seal(natural, tail["run_id"], tail["event_id"], tuple(groups))


_HEAD = re.compile((b"(" + COUNT + b")") * 6 + COUNT + FLAG, re.DOTALL)
_MIDDLE = re.compile(COUNT + b"(?:" + _EMPTY + b"|" + DIGEST + b")(?P<groups>" + COUNT + b")", re.DOTALL)
_COUNTS = re.compile(COUNT * 4, re.DOTALL)


def _after_rules(value: bytes, at: int) -> int:
    """Where the rules end; 0 where they are none."""
    size, start = long_count(value, at)
    text = value[start : start + size]
    return start + size if len(text) == size and are_rules(text.decode("utf-8", "replace")) else 0


def _after_groups(value: bytes, at: int, count: int, tasks: tuple[bytes, ...], found_at: list[int]) -> int:
    """Where an array of groups ends; 0 where one is not as it should be. found_at: takes where those of tasks begin."""
    for _ in range(count):
        head = _group_head().match(value, at)
        if tasks and value.startswith(tasks, sum(long_count(value, at))):
            found_at.append(at)
        if head is None or (body := _group_body(*head.group("total", "k"))) is None:
            return 0
        found = body.match(value, head.end())
        if found is None or (found["passed"] is not None and not _agree(found["passed"], found["reasons"])):
            return 0
        at = found.end()
    return _end_of_array(value, at, count)


def _agree(passed: bytes, reasons: bytes) -> bool:
    """Whether the slots without turns passed are those with a reason."""
    at = place = 0
    while at < len(passed):
        failed = passed[at] == 0
        at += 1 if failed else 2
        size, place = long_count(reasons, place)
        if failed != (size > 0):
            return False
        place += size
    return True


def _after_states(value: bytes, at: int) -> int:
    count, at = long_count(value, at)
    match = _state().match
    for _ in range(count):
        found = match(value, at)
        if found is None:
            return 0
        at = found.end()
    return _end_of_array(value, at, count)


def _end_of_array(value: bytes, at: int, count: int) -> int:
    if count == 0:
        return at
    return at + 1 if value[at : at + 1] == b"\0" else 0


@cache
def _group_head() -> "re.Pattern[bytes]":
    text = text_pattern()
    total = b"(?P<total>[" + b"".join(re.escape(bytes([2 * n])) for n in range(1, _MOST_TURNS + 1)) + b"])"
    parts = (text, text, one_of(Purpose), text, text, total, b"(?P<k>" + POSITIVE + b")")
    return re.compile(b"".join(parts), re.DOTALL)


@lru_cache(maxsize=256)
def _group_body(total: bytes, k: bytes) -> "re.Pattern[bytes] | None":
    """So many slots of a task of so many turns, after their number; None where they are too many."""
    slots = count_of(k)
    if slots > 1024:
        return None
    turns = b"[" + b"".join(re.escape(bytes([2 * n])) for n in range(count_of(total) + 1)) + b"]"
    again = b"\\x00" + re.escape(k)
    live = b"(?:\\x02%s){%d}%s\\x00{%d}" % (turns, slots, again, slots)
    mixed = b"(?P<passed>(?:\\x00|\\x02%s){%d})%s(?P<reasons>%s{%d})" % (turns, slots, again, text_pattern(), slots)
    # What nearly every group has stands first: it matches in one go.
    versions = again + b"(?:%s{%d}|(?:%s){%d})" % (SMALL_COUNT, slots, COUNT, slots)
    named = b"(?:%s|%s){%d}" % (DIGEST, text_pattern(), slots)
    trajectories = again + b"(?:\\x00{%d}|%s)\\x00" % (slots, named)
    parts = (b"(?:" + live + b"|" + mixed + b")", versions, trajectories, one_of(Zone, ""), FLAG, _state().pattern)
    return re.compile(b"".join(parts), re.DOTALL)


@cache
def _state() -> "re.Pattern[bytes]":
    """A task's state."""
    text = text_pattern()
    group = text + COUNT * 3 + POSITIVE
    windows = [
        _EMPTY,
        *(b"%s(?:%s){%d}\\x00" % (re.escape(bytes([2 * n])), group, n) for n in range(1, _MOST_WINDOW + 1)),
    ]
    return re.compile(text + text + b"(?:" + b"|".join(windows) + b")" + COUNT * 3, re.DOTALL)
