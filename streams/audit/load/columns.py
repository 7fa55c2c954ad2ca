"""Columnar side files: what the audit scans, as Parquet beside the archive, one file a sealed segment.

A side file is bound to its segment: it is named by the segment's sha256 and says it again inside. A segment without one
is read (and its sha256 checked) once, in parallel where there are many; equal segments give equal columns. Without a
folder to keep them in, columns are made in memory.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.reader import LogRecord
from schemas.codec import kind_of_frame, plain_record
from schemas.topics import Topic
from streams.archive.errors import ArchiveError
from streams.archive.manifest import read_manifest
from streams.archive.partition import partition_folder
from streams.archive.segment import Segment, read_segment
from streams.audit.collector import uncollected
from streams.audit.errors import AuditError
from streams.audit.load.column_sets import COLUMN_SETS, FORMAT, ColumnSet
from streams.audit.load.source import ArchiveSource, LogSource

_SEGMENT, _FORMAT = b"rods.segment", b"rods.columns"
_ROWS_IN_MEMORY = 50_000
_SEGMENTS_IN_PROCESS = 2


@dataclass(frozen=True, slots=True)
class ColumnStore:
    """The columns of a log.

    folder: where side files are kept; None: nowhere.
    jobs: processes that make them.
    """

    source: LogSource
    folder: Path | None = None
    jobs: int = os.cpu_count() or 1

    def table(self, topic: Topic) -> pa.Table:
        """All rows of a topic of one partition, in offset order. Raises AuditError."""
        wanted = COLUMN_SETS[topic]
        tables = [table for partition in self.source.partitions(topic) for table in self._tables(wanted, partition)]
        return pa.concat_tables(tables).unify_dictionaries() if tables else wanted.schema.empty_table()

    def _tables(self, wanted: ColumnSet, partition: int) -> Iterator[pa.Table]:
        if isinstance(self.source, ArchiveSource):
            yield from self._of_segments(self.source, wanted, partition)
        else:
            yield from _of_records(wanted, self.source.records(wanted.topic, partition))

    def _of_segments(self, source: ArchiveSource, wanted: ColumnSet, partition: int) -> Iterator[pa.Table]:
        try:
            segments = read_manifest(partition_folder(source.folder, wanted.topic, partition)).segments
        except ArchiveError as error:
            raise AuditError(str(error)) from error
        jobs = [_Job(source.folder, self.folder, wanted.topic, partition, segment) for segment in segments]
        absent = [job for job in jobs if job.side_file is None or not job.side_file.exists()]
        if len(absent) <= _SEGMENTS_IN_PROCESS or self.jobs <= 1:
            yield from (job.table() for job in jobs)
            return
        with ProcessPoolExecutor(self.jobs, mp_context=get_context("spawn")) as pool:
            if self.folder is None:
                yield from pool.map(_Job.table, jobs)
                return
            list(pool.map(_Job.keep, absent))
        yield from (job.table() for job in jobs)


@dataclass(frozen=True, slots=True)
class _Job:
    """One segment's columns."""

    archive: Path
    folder: Path | None
    topic: Topic
    partition: int
    segment: Segment

    @property
    def side_file(self) -> Path | None:
        if self.folder is None:
            return None
        return partition_folder(self.folder, self.topic, self.partition) / f"{self.segment.sha256}.parquet"

    def keep(self) -> None:
        """Makes the side file where it is not there."""
        self.table()

    @uncollected()
    def table(self) -> pa.Table:
        kept = self._kept()
        return self._made() if kept is None else kept

    def _kept(self) -> pa.Table | None:
        """The side file's columns; None where there is none of this segment and format."""
        path = self.side_file
        if path is None or not path.exists():
            return None
        try:
            table = pq.read_table(path, read_dictionary=list(COLUMN_SETS[self.topic].symbols))
        except (OSError, pa.ArrowException):
            return None
        said = table.schema.metadata or {}
        bound = said.get(_SEGMENT) == self.segment.sha256.encode() and said.get(_FORMAT) == FORMAT.encode()
        return table.replace_schema_metadata(None).cast(COLUMN_SETS[self.topic].schema) if bound else None

    def _made(self) -> pa.Table:
        place = partition_folder(self.archive, self.topic, self.partition)
        try:
            records = read_segment(place / self.segment.file, self.segment, self.partition)
            table = pa.concat_tables(_of_records(COLUMN_SETS[self.topic], records)).unify_dictionaries()
        except ArchiveError as error:
            raise AuditError(str(error)) from error
        if self.side_file is not None:
            _write(self.side_file, table, self.segment.sha256)
        return table


def _of_records(wanted: ColumnSet, records: Iterator[LogRecord]) -> Iterator[pa.Table]:
    """Tables of at most so many rows, the first of them also where there is no row."""
    rows: list[tuple[Any, ...]] = []
    told = False
    for record in records:
        value = record.value or b""
        kind = kind_of_frame(value)
        if kind in wanted.kinds:
            try:
                plain = plain_record(value)
            except Exception:  # noqa: BLE001, S112  # hostile bytes are no event, whatever the decoder makes of them
                continue
            rows += wanted.rows(record.offset, kind, plain)
        if len(rows) >= _ROWS_IN_MEMORY:
            yield _table(wanted, rows)
            rows, told = [], True
    if rows or not told:
        yield _table(wanted, rows)


def _table(wanted: ColumnSet, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Without the rows of values that no run writes, which no column holds."""
    try:
        return _filled(wanted, rows)
    except (pa.ArrowInvalid, OverflowError):
        return _filled(wanted, [row for row in rows if _fits(wanted, row)])


def _fits(wanted: ColumnSet, row: tuple[Any, ...]) -> bool:
    try:
        _filled(wanted, [row])
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _filled(wanted: ColumnSet, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(wanted.schema)
    arrays = []
    for field, values in zip(wanted.schema, columns, strict=True):
        plain = pa.array(values, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        arrays.append(plain.dictionary_encode() if pa.types.is_dictionary(field.type) else plain)
    return pa.Table.from_arrays(arrays, schema=wanted.schema)


def _write(path: Path, table: pa.Table, sha256: str) -> None:
    """The file appears complete or not at all; a folder that cannot be written to is no error: nothing is kept then."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        said = {_SEGMENT: sha256.encode(), _FORMAT: FORMAT.encode()}
        pq.write_table(table.replace_schema_metadata(said), scratch, compression="zstd")
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
