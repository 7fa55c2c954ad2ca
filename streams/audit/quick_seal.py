"""Recorded seals as events, decoded the quick way where they are well formed.

At an epoch's end a seal carries the state of every task of its partition, most of which no group has changed: where the
bytes are those of the states that the seals so far have shown, in order, these states are taken and not decoded again.
What is of another form is left to the decoder.
"""

import io
import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import fastavro

from schemas.codec import HEADER_BYTES, MAGIC, MAX_EVENT_BYTES, fingerprint, schema_text, schema_versions
from schemas.derive import twin
from schemas.envelope import Envelope
from schemas.rollouts import Purpose
from schemas.seals import PartitionSealed, SealedGroup, TaskState, WindowGroup, Zone
from streams.audit.quick_result import written
from streams.audit.verify.form import MOST_TURNS
from streams.audit.verify.form_seal import SealForm
from streams.audit.verify.grammar import (
    COUNT,
    DIGEST,
    FLAG,
    POSITIVE,
    SMALL_COUNT,
    count_of,
    long_count,
    one_of,
    text_of,
)
from streams.audit.verify.grammar import text_pattern as text

MOST_SLOTS = 64
_FIRST, _LAST = 11, 5
"""Fields before the groups, and after the states."""


class _State(NamedTuple):
    """A task's state, its bytes, and those of its window, whole and group by group."""

    avro: bytes
    state: TaskState
    window: bytes
    groups: tuple[bytes, ...]


class _Ordered:
    """The states of a partition's tasks, ordered by name. Of the many that an epoch's last seals carry, most are those
    of the epoch before: what changed is put in its place, and the rest stays where it is."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.avros: list[bytes] = []
        self.states: list[TaskState] = []
        self.changed: set[str] = set()

    def refresh(self, known: Mapping[str, _State]) -> None:
        """Takes in what changed."""
        new = self.changed - self.places.keys()
        for task in self.changed - new:
            place, one = self.places[task], known[task]
            self.avros[place], self.states[place] = one.avro, one.state
        self.changed.clear()
        if new:
            names = sorted(known)
            self.places = dict(zip(names, range(len(names)), strict=True))
            self.avros, self.states = [known[task].avro for task in names], [known[task].state for task in names]


class SealReader:
    """Reads the seals of a log in order."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, _State]] = {}
        self._ordered: dict[int, _Ordered] = {}
        self._places: dict[int, int] = {}

    def read(self, value: bytes) -> PartitionSealed | None:
        """The seal in a frame; None where a decoder is needed."""
        if value[:HEADER_BYTES] != seal_header() or len(value) > MAX_EVENT_BYTES:
            return None
        schemas = _schemas()
        body = io.BytesIO(value)
        body.seek(HEADER_BYTES)
        try:
            head: Any = fastavro.schemaless_reader(body, schemas[0])
            groups, at = self._groups(value, body.tell(), head["partition"])
            states, at = self._states(value, at, head)
            body.seek(at)
            tail: Any = fastavro.schemaless_reader(body, schemas[1])
        except Exception:  # noqa: BLE001  # hostile bytes are for the decoder to refuse
            return None
        if body.tell() != len(value):
            return None
        envelope = Envelope(**tail.pop("envelope"))
        return PartitionSealed(**head, groups=groups, state=states, **tail, envelope=envelope)

    def _groups(self, value: bytes, at: int, partition: int) -> tuple[tuple[SealedGroup, ...], int]:
        known = self._known.setdefault(partition, {})
        count, at = long_count(value, at)
        found: list[SealedGroup] = []
        states: dict[str, _State] = {}
        for _ in range(count):
            group, state, at = _group(value, at, known)
            found.append(group)
            states[group.task] = state
        end = _end_of_array(value, at, count)
        known.update(states)
        self._ordered.setdefault(partition, _Ordered()).changed.update(states)
        return tuple(found), end

    def _states(self, value: bytes, at: int, head: dict[str, Any]) -> tuple[tuple[TaskState, ...], int]:
        """Raises ValueError where these are not the states as the seals so far have them."""
        count, at = long_count(value, at)
        if not count:
            return (), at if count == 0 else -1
        partition = head["partition"]
        ordered = self._ordered[partition]
        ordered.refresh(self._known[partition])
        start = self._places.get(partition, 0) if head["chunk"] else 0
        states = tuple(ordered.states[start : start + count])
        joined = b"".join(ordered.avros[start : start + count])
        if len(states) != count or not value.startswith(joined, at):
            raise ValueError("these states are not those of the seals before")
        self._places[partition] = start + count
        return states, _end_of_array(value, at + len(joined), count)


class SealedGroups(NamedTuple):
    """Some groups of a seal."""

    epoch: int
    step: int
    groups: list[SealedGroup]


class GroupReader:
    """Reads single groups of seals, wherever they stand in a log."""

    def __init__(self, tasks: Collection[str]) -> None:
        self._form = SealForm()
        self._tasks = tuple([written(task) for task in tasks])

    def read(self, value: bytes) -> SealedGroups | None:
        """The groups of the tasks in a seal's frame; None where a decoder is needed."""
        seal = self._form.match(value, self._tasks)
        if seal is None:
            return None
        try:
            groups = [_group(value, at, {})[0] for at in seal.groups]
        except ValueError:
            return None
        return SealedGroups(int(seal.natural[0]), int(seal.natural[1]), groups)


def _end_of_array(value: bytes, at: int, count: int) -> int:
    """Raises ValueError."""
    if count < 0 or (count and value[at : at + 1] != b"\0"):
        raise ValueError("an array is of another form")
    return at + 1 if count else at


@cache
def seal_header() -> bytes:
    """Of seals of the newest schema version."""
    kind = PartitionSealed.KIND
    return MAGIC + fingerprint(schema_text(kind, schema_versions(kind)[-1]))


@cache
def _schemas() -> tuple[Any, Any]:
    """Of the fields before the groups and of those after the states: a record is its fields one after the other."""
    kind = PartitionSealed.KIND
    fields = schema_text(kind, schema_versions(kind)[-1])["fields"]
    names = [field["name"] for field in fields]
    assert names[_FIRST : len(names) - _LAST] == ["groups", "state"]
    return _parsed(fields[:_FIRST]), _parsed(_plain(fields[-_LAST:]))


def _parsed(fields: Any) -> Any:
    return fastavro.parse_schema({"type": "record", "name": "SealPart", "fields": fields}, named_schemas={})


def _plain(schema: Any) -> Any:
    """Without logical types, as the codec reads them."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key != "logicalType"}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def _group(value: bytes, at: int, known: Mapping[str, _State]) -> tuple[SealedGroup, _State, int]:
    """The group that begins here, its task's state, and where it ends. Raises ValueError where its form is another."""
    head = _head().match(value, at)
    if head is None:
        raise ValueError("a group is of another form")
    group, task, purpose, category, execution, total, k = head.groups()
    body = _body(total, k)
    found = body.match(value, head.end()) if body else None
    if found is None:
        raise ValueError("a group is of another form")
    passed, reasons, versions, trajectories, zone, boundary, *rest = found.groups()
    slots, name = count_of(k), _often(task)
    state = _state(rest, known.get(name))
    sealed = _SealedGroup(
        text_of(group).decode(),
        name,
        _often(purpose),
        _often(category),
        text_of(execution).decode() if execution != b"\0" else "",
        count_of(total),
        _turns(passed, slots),
        _nothing(slots) if len(reasons) == slots else _texts(reasons),
        _counts(versions),
        _nothing(slots) if len(trajectories) == slots else _texts(trajectories),
        _often(zone),
        boundary == b"\1",
        state.state,
    )
    sealed.__class__ = SealedGroup
    return sealed, state, found.end()


_SealedGroup, _TaskState, _WindowGroup = twin(SealedGroup), twin(TaskState), twin(WindowGroup)


def _state(parts: list[bytes], before: _State | None) -> _State:
    avro, task, category, window, kept, visit, group, moments, counts = parts
    if before is not None and window == before.window:
        groups, listed = before.state.window, before.groups
    elif window == b"\0":
        groups, listed = (), ()
    else:
        groups, listed = _kept(kept, before)
        last = _WindowGroup(text_of(group).decode(), *_counts(moments))
        last.__class__ = WindowGroup
        groups, listed = (*groups, last), (*listed, visit)
    state = _TaskState(_often(task), _often(category), groups, *_counts(counts))
    state.__class__ = TaskState
    return _State(avro, state, window, listed)


_Window = tuple[tuple[WindowGroup, ...], tuple[bytes, ...]]


def _kept(data: bytes, before: _State | None) -> _Window:
    """A window's groups but the last, after their number, and each of them as bytes. Nearly always they are the last
    ones of the window before, and not decoded again."""
    number = (data[0] >> 1) - 1
    if not number:
        return (), ()
    if before is not None:
        listed = before.groups[-number:]
        if len(listed) == number and data[1:] == b"".join(listed):
            return before.state.window[-number:], listed
    visits = list(_visit().finditer(data, 1))
    groups = tuple([WindowGroup(text_of(visit[1]).decode(), *_counts(visit[2])) for visit in visits])
    return groups, tuple([visit[0] for visit in visits])


@lru_cache(maxsize=65_536)
def _counts(data: bytes) -> tuple[int, ...]:
    """Integers that matched, one after the other."""
    found, at = [], 0
    while at < len(data):
        count, at = long_count(data, at)
        found.append(count)
    return tuple(found)


def _turns(data: bytes, slots: int) -> tuple[int | None, ...]:
    if len(data) == 2 * slots:
        return tuple(data[1::2].translate(_HALVES))
    turns: list[int | None] = []
    at = 0
    while at < len(data):
        turns.append(data[at + 1] >> 1 if data[at] else None)
        at += 2 if data[at] else 1
    return tuple(turns)


def _texts(data: bytes) -> tuple[str, ...]:
    texts, at = [], 0
    while at < len(data):
        size, at = long_count(data, at)
        texts.append(data[at : at + size].decode())
        at += size
    return tuple(texts)


@cache
def _nothing(slots: int) -> tuple[str, ...]:
    return ("",) * slots


_HALVES = bytes([value >> 1 for value in range(256)])


@lru_cache(maxsize=262_144)
def _often(data: bytes) -> str:
    """A text that many groups share."""
    return text_of(data).decode() if data != b"\0" else ""


@cache
def _head() -> "re.Pattern[bytes]":
    total = b"[" + b"".join([re.escape(bytes([2 * n])) for n in range(1, MOST_TURNS + 1)]) + b"]"
    parts = (text(), text(), one_of(Purpose), text(), text(), total, POSITIVE)
    return re.compile(b"".join([b"(%s)" % part for part in parts]), re.DOTALL)


@lru_cache(maxsize=256)
def _body(total: bytes, k: bytes) -> "re.Pattern[bytes] | None":
    """So many slots of a task of so many turns, after their number; None where they are too many."""
    slots = count_of(k)
    if slots > MOST_SLOTS:
        return None
    turns = b"[" + b"".join([re.escape(bytes([2 * n])) for n in range(count_of(total) + 1)]) + b"]"
    again = b"\\x00" + re.escape(k)
    # Of each item what it nearly always is, written out, and what else it may be, repeated: the first is far quicker.
    repeated = (
        (b"\\x02" + turns, b"\\x00|\\x02" + turns),
        (b"\\x00", b"\\x00|" + text()),
        (SMALL_COUNT, COUNT),
        (b"\\x00", b"\\x00|%s|%s" % (DIGEST, text())),
    )
    arrays = again.join([b"(%s|(?:%s){%d})" % (a * slots, b, slots) for a, b in repeated]) + b"\\x00"
    return re.compile(arrays + b"(%s)(%s)" % (one_of(Zone), FLAG) + _state_pattern(), re.DOTALL)


@cache
def _state_pattern() -> bytes:
    """A state; of its window, which may be empty, the last group by itself."""
    moments = COUNT * 3 + POSITIVE
    groups = [(text() + moments) * n if n < 2 else b"(?:%s){%d}" % (text() + moments, n) for n in range(8)]
    kept = b"|".join([re.escape(bytes([2 * n])) + others for n, others in enumerate(groups, 1)])
    window = b"(\\x00|(%s)((%s)(%s))\\x00)" % (kept, text(), moments)
    return b"((%s)(%s)%s(%s))" % (text(), text(), window, COUNT * 3)


@cache
def _visit() -> "re.Pattern[bytes]":
    return re.compile(b"(" + text() + b")(" + COUNT * 3 + POSITIVE + b")", re.DOTALL)
