import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from eventlog.client import log_producer
from eventlog.errors import LogError
from rods.brokers.embedded import create_topics
from schemas.topics import Topic
from streams.archive.manifest import read_manifest
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions, read_archive, read_partition
from streams.archive.worker import ArchiveSettings, archive_until
from tests.log_writing import send_all

ROOT = Path(__file__).resolve().parents[3]
WORKER = (
    "import sys; from pathlib import Path; from streams.archive.worker import ArchiveSettings, run_archive\n"
    "print('up', flush=True)\n"
    "run_archive(ArchiveSettings(sys.argv[1], sys.argv[2], 2, Path(sys.argv[3]), seal_seconds=0.01))"
)


def _start(broker: str, prefix: str, folder: Path) -> subprocess.Popen[bytes]:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, broker, prefix, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"up\n"
    return worker


async def _write(broker: str, prefix: str, topic: Topic, partition: int, values: range) -> None:
    async with log_producer(broker) as producer:
        pairs = [(f"k{number}", f"v{number}".encode()) for number in values]
        await send_all(producer, topic.named(prefix), partition, pairs)


async def _archive_once(settings: ArchiveSettings) -> None:
    stopping = asyncio.Event()
    stopping.set()
    await archive_until(settings, stopping)


async def test_stopping_archives_every_partition_up_to_its_end(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "all.", 2)
    await _write(broker, "all.", Topic.ROLLOUTS, 0, range(5))
    await _write(broker, "all.", Topic.ROLLOUTS, 1, range(5, 12))
    await _write(broker, "all.", Topic.POOL, 0, range(3))
    settings = ArchiveSettings(broker, "all.", 2, tmp_path / "archive")
    await _archive_once(settings)
    rollouts = [
        (record.partition, record.offset, record.key, record.value)
        for record in read_archive(settings.folder, Topic.ROLLOUTS)
    ]
    assert rollouts == [(0, n, f"k{n}".encode(), f"v{n}".encode()) for n in range(5)] + [
        (1, n - 5, f"k{n}".encode(), f"v{n}".encode()) for n in range(5, 12)
    ]
    assert [record.offset for record in read_archive(settings.folder, Topic.POOL)] == [0, 1, 2]
    assert [record.offset for record in read_partition(settings.folder, Topic.ROLLOUTS, 1, start=4)] == [4, 5, 6]
    assert archived_partitions(settings.folder, Topic.SEALS) == [0]
    assert (settings.folder / "schemas" / "PartitionSealed.v1.avsc").exists()


async def test_sigterm_drains_seals_and_ends_with_exit_code_0(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "term.", 2)
    await _write(broker, "term.", Topic.ROLLOUTS, 0, range(1))
    worker = _start(broker, "term.", tmp_path)
    while not list((tmp_path / "rollouts").glob("*/*.avro")):
        assert worker.poll() is None
        await asyncio.sleep(0.01)
    await _write(broker, "term.", Topic.ROLLOUTS, 0, range(1, 3000))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert len(list(read_archive(tmp_path, Topic.ROLLOUTS))) == 3000


async def test_an_archive_is_not_continued_from_a_log_that_lacks_its_next_offset(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "old.", 1)
    await create_topics(broker, "new.", 1)
    await _write(broker, "old.", Topic.POOL, 0, range(3))
    await _archive_once(ArchiveSettings(broker, "old.", 1, tmp_path))
    with pytest.raises(LogError, match=r"new\.pool/0 holds offsets 0 to 0, and 3 is to be read next"):
        await _archive_once(ArchiveSettings(broker, "new.", 1, tmp_path))


def _assert_whole(folder: Path, written: int) -> None:
    """Each of so many values is there once, in both partitions."""
    found = [(record.partition, record.offset, record.value) for record in read_archive(folder, Topic.ROLLOUTS)]
    assert found == [(partition, number, f"v{number}".encode()) for partition in (0, 1) for number in range(written)]


async def test_an_archiver_killed_at_random_moments_loses_nothing_and_doubles_nothing(
    broker: str, tmp_path: Path
) -> None:
    rng = Random(5)
    await create_topics(broker, "random.", 2)
    written = 0
    for _ in range(6):
        worker = _start(broker, "random.", tmp_path)
        alive_for = rng.uniform(0.0, 0.5)
        for _ in range(rng.randrange(2, 5)):
            for partition in (0, 1):
                await _write(broker, "random.", Topic.ROLLOUTS, partition, range(written, written + 150))
            written += 150
            await asyncio.sleep(alive_for / 5)
        worker.kill()
        worker.communicate()
        for partition in (0, 1):
            read_manifest(partition_folder(tmp_path, Topic.ROLLOUTS, partition))
    await _archive_once(ArchiveSettings(broker, "random.", 2, tmp_path))
    _assert_whole(tmp_path, written)
    assert list(tmp_path.rglob("*.tmp")) == []


async def test_of_two_archivers_one_goes_on_and_the_other_ends_with_a_reason(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "two.", 2)
    workers = [_start(broker, "two.", tmp_path) for _ in range(2)]
    written = 0
    while all(worker.poll() is None for worker in workers):
        for partition in (0, 1):
            await _write(broker, "two.", Topic.ROLLOUTS, partition, range(written, written + 50))
        written += 50
        await asyncio.sleep(0.05)
    for worker in workers:
        worker.terminate()
    errors = [worker.communicate()[1] for worker in workers]
    assert any(
        b"another archiver writes to" in said for said, worker in zip(errors, workers, strict=True) if worker.returncode
    )
    await _archive_once(ArchiveSettings(broker, "two.", 2, tmp_path))
    _assert_whole(tmp_path, written)
