import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.client import log_producer
from eventlog.errors import LogError
from rods.brokers.embedded import EmbeddedBroker, create_topics
from schemas.topics import Topic
from streams.archive.errors import ArchiveError
from streams.archive.read import archived_partitions, read_archive, read_partition
from streams.archive.worker import ArchiveSettings, archive_until
from tests.log_writing import send_all

ROOT = Path(__file__).resolve().parents[3]
WORKER = (
    "import sys; from pathlib import Path; from streams.archive.worker import ArchiveSettings, run_archive\n"
    "run_archive(ArchiveSettings(sys.argv[1], sys.argv[2], 2, Path(sys.argv[3]), seal_seconds=0.05))"
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker") / "log") as embedded:
        yield embedded.address


def _start(broker: str, prefix: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, broker, prefix, str(folder)], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


async def _write(broker: str, prefix: str, topic: Topic, partition: int, values: range) -> None:
    async with log_producer(broker) as producer:
        await send_all(
            producer, topic.named(prefix), partition, [(f"k{number}", f"v{number}".encode()) for number in values]
        )


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


async def test_an_archive_written_with_another_text_of_a_schema_is_refused(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "schema.", 1)
    settings = ArchiveSettings(broker, "schema.", 1, tmp_path)
    await _archive_once(settings)
    (tmp_path / "schemas" / "StepOpened.v1.avsc").write_text("{}")
    with pytest.raises(ArchiveError, match=r"StepOpened\.v1\.avsc differs"):
        await _archive_once(settings)
