"""The pool at an epoch, from the log alone: what a boundary needs is decoded, and no more."""

from collections.abc import Iterator
from typing import Any

from schemas.codec import decode, kind_of_frame, leading
from schemas.errors import SchemaError, UndecodableError
from schemas.pool import BoundaryOpened, PoolMaterialized
from schemas.seals import PartitionSealed, SelectionClosed
from schemas.topics import Topic
from streams.archive.errors import ArchiveError
from streams.archive.manifest import read_manifest
from streams.archive.partition import partition_folder
from streams.audit.collector import uncollected
from streams.audit.errors import AuditError, of_a_run
from streams.audit.load.source import ArchiveSource, LogSource, events
from streams.pool.replay import ReplayedPool, pool_at


@uncollected()
@of_a_run()
def pool_of(source: LogSource, epoch: int | None = None) -> ReplayedPool:
    """The pool after an epoch, by default the last one. Raises AuditError where the log holds none."""
    chosen = last_epoch(source) if epoch is None else epoch
    try:
        found = _found(source, chosen, near=True) if chosen is not None else None
    except (TypeError, ValueError) as error:
        raise AuditError(f"the pool of epoch {chosen} does not follow from the log: {error}") from error
    if found is None:
        raise AuditError("the log holds no pool" if epoch is None else f"the log holds no pool of epoch {epoch}")
    return found


def _found(source: LogSource, epoch: int, *, near: bool) -> ReplayedPool | None:
    """near: whether seals are read from where their epoch seems to begin, and seeds of earlier ones are taken for
    selected; unless that gives the recorded pool, they are read from the start."""
    pool = ((offset, event) for offset, _, event in events(source, Topic.POOL, 0))
    try:
        found = pool_at(pool, lambda opened: _seals_of(source, opened, near=near), epoch, whole=not near)
    except ValueError:
        if not near:
            raise
    else:
        if not near or found is None or found.agrees:
            return found
    return _found(source, epoch, near=False)


def _begins(source: LogSource, epoch: int) -> int:
    """The last segment of seals that an earlier epoch opens; 0 where there is none. A seal that was written again may
    open one too."""
    starts = _segment_starts(source, Topic.SEALS)
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        first = next(source.records(Topic.SEALS, 0, starts[middle]), None)
        try:
            opened = decode((first.value if first else None) or b"").epoch
        except (SchemaError, AttributeError):
            return 0
        low, high = (middle, high) if opened < epoch else (low, middle)
    return starts[low] if starts else 0


def _segment_starts(source: LogSource, topic: Topic) -> list[int]:
    """Where an archive's segments of a topic of one partition begin; empty for a cluster."""
    if not isinstance(source, ArchiveSource):
        return []
    try:
        return [segment.first for segment in read_manifest(partition_folder(source.folder, topic, 0)).segments]
    except ArchiveError as error:
        raise AuditError(str(error)) from error


def last_epoch(source: LogSource) -> int | None:
    """The epoch of the last PoolMaterialized; None where there is none. Looked for from the end."""
    starts = _segment_starts(source, Topic.POOL) or [0]
    for start, end in reversed(list(zip(starts, [*starts[1:], None], strict=True))):
        last = b""
        for frame in _pools(source, start, end):
            last = frame
        try:
            if last:
                return int(decode(last).epoch)
        except UndecodableError:
            readable = [epoch for frame in _pools(source, start, end) if (epoch := _epoch_of(frame)) is not None]
            if readable:
                return readable[-1]
    return None


def _pools(source: LogSource, start: int, end: int | None) -> Iterator[bytes]:
    """The frames between two offsets that claim to be a PoolMaterialized."""
    for record in source.records(Topic.POOL, 0, start) if source.partitions(Topic.POOL) else ():
        if end is not None and record.offset >= end:
            return
        if kind_of_frame(record.value or b"") == PoolMaterialized.KIND:
            yield record.value or b""


def _epoch_of(frame: bytes) -> int | None:
    try:
        return int(decode(frame).epoch)
    except UndecodableError:
        return None


def _seals_of(source: LogSource, opened: BoundaryOpened, *, near: bool) -> Iterator[tuple[int, Any]]:
    """The seals and selections up to an epoch's last step; near: the epoch's alone. Frames of other epochs are then
    looked at, not decoded."""
    if not source.partitions(Topic.SEALS):
        return
    for record in source.records(Topic.SEALS, 0, _begins(source, opened.epoch) if near else 0):
        value = record.value or b""
        kind = kind_of_frame(value)
        if kind not in (PartitionSealed.KIND, SelectionClosed.KIND):
            continue
        try:
            row = leading(value, "step").record
            if not near or row["epoch"] == opened.epoch:
                yield record.offset, decode(value)
        except UndecodableError:
            continue
        if kind == SelectionClosed.KIND and row["step"] >= opened.last_step:
            return
