"""What the audit does a second, on a made log.

``python -m benchmarks.audit --groups 625000 --tasks 100000 --epochs 50`` makes the log once, in ``--folder``. Rates are
in attempts and in records a second of wall time, on as many processes as ``--jobs``, with the processor time of all of
them; beside them, in the same run, a plain loop over fastavro that adds up progress by epoch, and the same sums in
ClickHouse. ``--part`` runs one of them. ``--long-epochs 10000`` makes a log of a million records instead, and asks it
for a task and for pools.
"""

import argparse
import io
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import fastavro

from benchmarks.audit_log import RUN, K, Size, make_log
from schemas.codec import HEADER_BYTES, kind_of_frame, schema_text
from schemas.topics import Topic
from streams.audit.drift.figures import drift
from streams.audit.load.columns import ColumnStore
from streams.audit.load.epochs import run_facts
from streams.audit.load.source import ArchiveSource
from streams.audit.replay import ReplayOptions, replay
from streams.audit.verify.archive import verify_archive

T = TypeVar("T")
LONG_GROUPS, LONG_TASKS = 45, 200
DONE = "made-whole"
"""Written last, so that a log that was made in part is made again."""


def timed(name: str, groups: int, records: int, work: Callable[[], T]) -> T:
    """Runs, and prints the rate, in attempts and in the records that the work reads."""
    start, spent = time.perf_counter(), processor_seconds()
    result = work()
    seconds, spent = time.perf_counter() - start, processor_seconds() - spent
    print(
        f"{name:<26} {seconds:8.2f} s ({spent:8.2f} s of processors)  {groups * K / seconds:12,.0f} attempts/s  "
        f"{records / seconds:10,.0f} records/s  peak {peak_memory():,.0f} MiB",
        flush=True,
    )
    return result


def peak_memory() -> float:
    """Of this process and, where there were others, of the largest of them, together. MiB."""
    used = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used) / 1024


def processor_seconds() -> float:
    """Of this process and of those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def plain_loop(source: ArchiveSource) -> dict[int, list[int]]:
    """Turns passed and turns in all by epoch, by fastavro alone."""
    schema: Any = fastavro.parse_schema(schema_text("RolloutFinished", 1))
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for partition in source.partitions(Topic.ROLLOUTS):
        for record in source.records(Topic.ROLLOUTS, partition):
            value = record.value or b""
            if kind_of_frame(value) == "RolloutFinished":
                body = io.BytesIO(value)
                body.seek(HEADER_BYTES)
                event: Any = fastavro.schemaless_reader(body, schema)
                sums[event["epoch"]][0] += sum(slot["turns_passed"] for slot in event["slots"])
                sums[event["epoch"]][1] += event["k"] * event["turns_total"]
    return dict(sums)


def clickhouse(columns: Path) -> dict[int, list[int]]:
    """The same sums by embedded ClickHouse, over the side files of the seals."""
    from chdb import query

    files = f"file('{columns / Topic.SEALS.value}/*/*.parquet', Parquet)"
    sql = f"""
        select epoch, sum(sum_passed), sum(k * turns_total), count(), countIf(live > 0), countIf(zone = 'boundary'),
               avgIf(sum_passed / (live * turns_total), live > 0), uniqExact(task)
        from {files} where purpose = 'train' group by epoch order by epoch"""
    rows = [line.split(",") for line in str(query(sql, "CSV")).splitlines()]
    return {int(row[0]): [int(row[1]), int(row[2])] for row in rows}


def long_log(folder: Path, epochs: int) -> None:
    """What it takes to ask for one task and for one pool of a log of many epochs, by whole commands."""
    size = Size(epochs * LONG_GROUPS, LONG_TASKS, epochs)
    archive = made(folder / f"long-{size.groups}-{size.tasks}-{size.epochs}", size)
    records = records_of(ArchiveSource(archive), *Topic)
    print(f"{records:,} records of {epochs:,} epochs")
    for name, words in (
        ("rods trace", ("trace", str(archive), "made-task-000007")),
        ("rods pool show, middle", ("pool", "show", str(archive), "--at-epoch", str(epochs // 2))),
        ("rods pool show, last", ("pool", "show", str(archive))),
    ):
        timed(name, size.groups, records, partial(command, *words))


def command(*words: str) -> None:
    """Runs ``rods`` from its start to its end."""
    subprocess.run([sys.executable, "-m", "rods", *words], stdout=subprocess.DEVNULL, check=True)


def made(archive: Path, size: Size) -> Path:
    """The log of a size, made where it is not there yet."""
    if not (archive / DONE).exists():
        shutil.rmtree(archive, ignore_errors=True)
        make_log(archive, size)
        (archive / DONE).touch()
    return archive


def records_of(source: ArchiveSource, *topics: Topic) -> int:
    return sum(source.end(topic, number) for topic in topics for number in source.partitions(topic))


class _Parts:
    """What is measured, each part by itself, so that they can be run one by one."""

    def __init__(self, archive: Path, columns: Path, groups: int, jobs: int) -> None:
        self.archive, self.columns, self.groups, self.jobs = archive, columns, groups, jobs
        self.source = ArchiveSource(archive)
        self.records = records_of(self.source, *Topic)

    def drift(self) -> None:
        run, store = run_facts(self.source), ColumnStore(self.source, self.columns, self.jobs)
        assert run.run_id == RUN
        shutil.rmtree(self.columns, ignore_errors=True)
        records = records_of(self.source, Topic.SEALS, Topic.POOL, Topic.SYNTHESIS)
        timed("drift, side files made", self.groups, records, lambda: drift(store, run))
        timed("drift, side files there", self.groups, records, lambda: drift(store, run))

    def replay(self) -> None:
        for name, views in (("replay of all decisions", False), ("and of all measurements", True)):
            options = ReplayOptions(jobs=self.jobs, views=views)
            records = self.records - (0 if views else records_of(self.source, Topic.MEASUREMENTS))
            report = timed(name, self.groups, records, partial(replay, self.source, options))
            assert report.agrees, report.first

    def verify(self) -> None:
        found = timed("verify", self.groups, self.records, lambda: verify_archive(self.archive, self.jobs))
        assert found.sound and found.attempts == self.groups * K, found.faults[:1]

    def compare(self) -> None:
        records = records_of(self.source, Topic.ROLLOUTS)
        plain = timed("plain loop over fastavro", self.groups, records, lambda: plain_loop(self.source))
        asked = timed("ClickHouse, side files", self.groups, self.groups, lambda: clickhouse(self.columns))
        assert asked == plain


PARTS = ("drift", "replay", "verify", "compare")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=4_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path("runs/audit-benchmark"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--long-epochs", type=int, default=0, help="of a second log, for trace and pool show")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; compare needs drift's side files")
    chosen = parser.parse_args()
    if chosen.long_epochs:
        long_log(chosen.folder, chosen.long_epochs)
        return
    size = Size(chosen.groups, chosen.tasks, chosen.epochs)
    archive = made(chosen.folder / f"{size.groups}-{size.tasks}-{size.epochs}", size)
    columns = chosen.folder / "columns" / archive.name
    parts = _Parts(archive, columns, size.per_epoch * size.epochs, chosen.jobs)
    print(f"{parts.groups * K:,} attempts in {parts.groups:,} groups, {parts.records:,} records")
    for part in chosen.part or PARTS:
        getattr(parts, part)()


if __name__ == "__main__":
    main()
