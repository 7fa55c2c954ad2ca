"""A partition's seal: its digest, its chunks, and the seal that complete chunks join to.

The digest covers decision content in canonical order: never offsets, clocks, generations, run, execution or trajectory
ids, policy versions or counts of deliveries. So any run of the same content gives it again.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from schemas.envelope import MAX_REMEMBERED
from schemas.rules import canonical_json
from schemas.seals import PartitionSealed, SealedGroup, TaskState
from streams.errors import UnassembledSealError

MAX_CHUNK_BYTES = 4 * 1024 * 1024
MAX_RULES_BYTES = 256 * 1024
_ENVELOPE_BYTES = 16 * 1024
_INTEGER_BYTES = 10


def seal_digest(seal: PartitionSealed) -> str:
    """sha256, hexadecimal, of the decision content of a complete seal (see `join_chunks`)."""
    digest = hashlib.sha256()
    for part in _content(seal):
        digest.update(canonical_json(part).encode() + b"\n")
    digest.update(b"".join(map(_state_line, seal.state)))
    return digest.hexdigest()


def sealed(seal: PartitionSealed) -> tuple[PartitionSealed, ...]:
    """A complete seal with its digest, in chunks that each encode to less than 4 MiB."""
    digest = seal_digest(seal)
    packs = list(_packs(seal))
    return tuple(
        [
            replace(seal, chunk=chunk, chunks=len(packs), digest=digest, groups=groups, state=state)
            for chunk, (groups, state) in enumerate(packs)
        ]
    )


def join_chunks(chunks: Iterable[PartitionSealed]) -> PartitionSealed:
    """The complete seal, as one of a single chunk with the first chunk's envelope. Raises UnassembledSealError."""
    ordered = sorted(chunks, key=lambda seal: seal.chunk)
    if not ordered or [seal.chunk for seal in ordered] != list(range(ordered[0].chunks)):
        raise UnassembledSealError("a seal's chunks are not complete")
    first = ordered[0]
    if len({identity(seal) for seal in ordered}) > 1:
        raise UnassembledSealError(f"chunks of different seals of step {first.step}, partition {first.partition}")
    groups = tuple(chain.from_iterable([seal.groups for seal in ordered]))
    state = tuple(chain.from_iterable([seal.state for seal in ordered]))
    return replace(first, chunk=0, chunks=1, groups=groups, state=state)


def identity(seal: Any) -> tuple[int, int, int, str]:
    """What the chunks of one seal share: step, partition, number of chunks, digest."""
    return (seal.step, seal.partition, seal.chunks, seal.digest)


def _content(seal: PartitionSealed) -> Iterator[object]:
    yield ["seal", seal.epoch, seal.step, seal.partition, seal.partitions, seal.last_of_epoch, seal.rules]
    for group in seal.groups:
        yield ["group", group.group, group.task, group.purpose, group.category, group.turns_total]
        yield [group.passed, group.reasons, group.zone, group.boundary, _task_content(group.state)]


@lru_cache(maxsize=MAX_REMEMBERED)
def _state_line(state: TaskState) -> bytes:
    """What the digest covers of a task's state; at an epoch's end most states are those of the epoch before."""
    return canonical_json(["state", _task_content(state)]).encode() + b"\n"


def _task_content(state: TaskState) -> list[object]:
    window = [[g.group, g.n, g.sum_passed, g.sum_squares, g.turns_total] for g in state.window]
    return [state.task, state.category, window, state.visits, state.low_streak, state.high_streak]


Pack = tuple[tuple[SealedGroup, ...], tuple[TaskState, ...]]


def _packs(seal: PartitionSealed) -> Iterator[Pack]:
    """Groups, then states, in order, filled up to an upper bound of their encoded size."""
    room = chunk_room(seal.rules)
    groups: list[SealedGroup] = []
    states: list[TaskState] = []
    used = 0
    items: tuple[SealedGroup | TaskState, ...] = (*seal.groups, *seal.state)
    for item in items:
        size = _group_bound(item) if isinstance(item, SealedGroup) else _task_bound(item)
        if used + size > room and (groups or states):
            yield tuple(groups), tuple(states)
            groups, states, used = [], [], 0
        used += size
        if isinstance(item, SealedGroup):
            groups.append(item)
        else:
            states.append(item)
    yield tuple(groups), tuple(states)


def chunk_room(rules: str) -> int:
    """Bytes for the groups and states of one chunk, by the upper bound of their encoded size."""
    return MAX_CHUNK_BYTES - _ENVELOPE_BYTES - len(rules.encode())


def _group_bound(group: SealedGroup) -> int:
    texts = (group.group, group.task, group.purpose, group.category, group.execution, group.zone)
    slots = len(group.passed) * (2 * _INTEGER_BYTES + 2)
    return (
        _text_bound(texts + group.reasons + group.trajectories) + slots + _task_bound(group.state) + 8 * _INTEGER_BYTES
    )


def _task_bound(state: TaskState) -> int:
    texts = (state.task, state.category, *[group.group for group in state.window])
    return _text_bound(texts) + (4 * len(state.window) + 5) * _INTEGER_BYTES


def _text_bound(texts: Sequence[str]) -> int:
    text = "".join(texts)
    return (len(text) if text.isascii() else len(text.encode())) + 5 * len(texts)
