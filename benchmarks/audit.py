"""What the audit does a second, on a made log.

``python -m benchmarks.audit --groups 625000 --tasks 100000 --epochs 50`` makes the log once, in ``--folder``. Rates are
in attempts and in groups a second of wall time, on as many processes as ``--jobs``, with the processor time of all of
them; beside them, in the same run, a plain loop over fastavro that adds up progress by epoch, and the same sums in
ClickHouse. ``--long-epochs 10000`` makes a log of a million records instead, and asks it for a task and for pools.
"""

import argparse
import io
import os
import resource
import shutil
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import fastavro

from benchmarks.audit_log import RUN, K, Size, make_log
from schemas.codec import HEADER_BYTES, kind_of_frame, schema_text
from schemas.topics import Topic
from streams.audit.columns import ColumnStore
from streams.audit.drift import drift
from streams.audit.lineage import lineage
from streams.audit.pool_epoch import pool_of
from streams.audit.replay import ReplayOptions, replay
from streams.audit.source import ArchiveSource
from streams.audit.story import run_story
from streams.audit.verify import verify_archive

T = TypeVar("T")
LONG_GROUPS, LONG_TASKS = 92, 200
DONE = "made-whole"
"""Written last, so that a log that was made in part is made again."""


def timed(name: str, groups: int, work: Callable[[], T]) -> T:
    """Runs, and prints the rate."""
    start, spent = time.perf_counter(), processor_seconds()
    result = work()
    seconds, spent = time.perf_counter() - start, processor_seconds() - spent
    attempts = groups * K
    print(
        f"{name:<26} {seconds:8.2f} s ({spent:8.2f} s of processors)  {attempts / seconds:12,.0f} attempts/s  "
        f"{groups / seconds:10,.0f} groups/s"
    )
    return result


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
    """What it takes to ask for one task and for one pool of a log of many epochs."""
    size = Size(epochs * LONG_GROUPS, LONG_TASKS, epochs)
    archive = folder / f"long-{size.groups}-{size.tasks}-{size.epochs}"
    if not (archive / DONE).exists():
        shutil.rmtree(archive, ignore_errors=True)
        timed("made, the long one", size.groups, lambda: make_log(archive, size))
        (archive / DONE).touch()
    source = ArchiveSource(archive)
    records = sum(source.end(topic, number) for topic in Topic for number in source.partitions(topic))
    print(f"{records:,} records of {epochs:,} epochs")
    timed("trace of a task", size.groups, lambda: lineage(source, "made-task-000007"))
    timed("pool show, in the middle", size.groups, lambda: pool_of(source, epochs // 2))
    timed("pool show, the last", size.groups, lambda: pool_of(source))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--tasks", type=int, default=4_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path("runs/audit-benchmark"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--long-epochs", type=int, default=0, help="of a second log, for trace and pool show")
    chosen = parser.parse_args()
    if chosen.long_epochs:
        long_log(chosen.folder, chosen.long_epochs)
        return
    size = Size(chosen.groups, chosen.tasks, chosen.epochs)
    archive = chosen.folder / f"{size.groups}-{size.tasks}-{size.epochs}"
    groups = size.per_epoch * size.epochs
    if not (archive / DONE).exists():
        shutil.rmtree(archive, ignore_errors=True)
        timed("made", groups, lambda: make_log(archive, size))
        (archive / DONE).touch()
    source, columns = ArchiveSource(archive), chosen.folder / "columns" / archive.name
    story = run_story(source)
    assert story.run_id == RUN
    shutil.rmtree(columns, ignore_errors=True)
    store = ColumnStore(source, columns, chosen.jobs)
    timed("drift, side files made", groups, lambda: drift(store, story))
    timed("drift, side files there", groups, lambda: drift(store, story))
    report = timed(
        "replay of all decisions", groups, lambda: replay(source, ReplayOptions(jobs=chosen.jobs, views=False))
    )
    assert report.agrees, report.first
    verified = timed("verify", groups, lambda: verify_archive(archive, chosen.jobs))
    assert verified.sound and verified.attempts == groups * K, verified.faults[:1]
    plain = timed("plain loop over fastavro", groups, lambda: plain_loop(source))
    asked = timed("ClickHouse, side files", groups, lambda: clickhouse(columns))
    assert asked == plain
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"peak memory of a process {peak / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
