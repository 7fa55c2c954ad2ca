"""An archiver killed anywhere, and two at once: nothing is lost, nothing comes twice, and the chain holds."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from eventlog.client import log_producer
from eventlog.reader import LogRecord
from rods.brokers.embedded import EmbeddedBroker, create_topics
from schemas.codec import AVRO_FOLDER
from schemas.topics import Topic
from streams.archive.errors import ArchiveError
from streams.archive.manifest import MANIFEST, read_manifest
from streams.archive.partition import PartitionArchive, partition_folder
from streams.archive.read import read_archive
from streams.archive.segment import segment_name
from streams.archive.worker import ArchiveSettings, archive_until, keep_schemas
from tests.log_writing import send_all
from tests.streams.archive.synced import synced

ROOT = Path(__file__).resolve().parents[3]
WORKER = (
    "import sys; from pathlib import Path; from streams.archive.worker import ArchiveSettings, run_archive\n"
    "print('up', flush=True)\n"
    "run_archive(ArchiveSettings(sys.argv[1], sys.argv[2], 2, Path(sys.argv[3]), seal_seconds=0.01))"
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker") / "log") as embedded:
        yield embedded.address


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


def _ended(worker: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    _, errors = worker.communicate()
    return worker.returncode, errors


async def _write(broker: str, prefix: str, values: range) -> None:
    async with log_producer(broker) as producer:
        for partition in (0, 1):
            pairs = [(f"k{number}", f"{partition}-{number}".encode()) for number in values]
            await send_all(producer, Topic.ROLLOUTS.named(prefix), partition, pairs)


async def _archive_once(settings: ArchiveSettings) -> None:
    stopping = asyncio.Event()
    stopping.set()
    await archive_until(settings, stopping)


def _values(folder: Path) -> list[tuple[int, int, bytes | None]]:
    return [(record.partition, record.offset, record.value) for record in read_archive(folder, Topic.ROLLOUTS)]


def _expected(written: int) -> list[tuple[int, int, bytes | None]]:
    return [(partition, number, f"{partition}-{number}".encode()) for partition in (0, 1) for number in range(written)]


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
            await _write(broker, "random.", range(written, written + 150))
            written += 150
            await asyncio.sleep(alive_for / 5)
        worker.kill()
        _ended(worker)
        for partition in (0, 1):
            read_manifest(partition_folder(tmp_path, Topic.ROLLOUTS, partition))
    await _archive_once(ArchiveSettings(broker, "random.", 2, tmp_path))
    assert _values(tmp_path) == _expected(written)
    assert list(tmp_path.rglob("*.tmp")) == []


async def test_of_two_archivers_one_goes_on_and_the_other_ends_with_a_reason(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "two.", 2)
    await _write(broker, "two.", range(50))
    workers = [_start(broker, "two.", tmp_path) for _ in range(2)]
    written = 50
    while all(worker.poll() is None for worker in workers):
        await _write(broker, "two.", range(written, written + 50))
        written += 50
        await asyncio.sleep(0.05)
    alive = [worker for worker in workers if worker.poll() is None]
    for worker in alive:
        worker.terminate()
    ends = [_ended(worker) for worker in workers]
    assert any(b"another archiver writes to" in errors for code, errors in ends if code)
    await _archive_once(ArchiveSettings(broker, "two.", 2, tmp_path))
    assert _values(tmp_path) == _expected(written)


def _sealed(folder: Path, *batches: range) -> PartitionArchive:
    archive = PartitionArchive(folder, Topic.POOL, 0)
    for batch in batches:
        for offset in batch:
            archive.add(LogRecord("rods.pool", 0, offset, 1, b"k", str(offset).encode(), ()), 0.0)
        archive.seal()
    return archive


def test_a_crash_at_any_sync_leaves_a_whole_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies, and what it wrote is there, synced or not: what a machine without power keeps is told by the
    order of syncs, below. What was sealed before is still there, and sealing goes on."""
    steps = _count_syncs(tmp_path / "counted", monkeypatch)
    assert steps >= 3
    for dies_at in range(steps):
        folder = tmp_path / str(dies_at)
        archive = _sealed(folder, range(3))
        archive.add(LogRecord("rods.pool", 0, 3, 1, b"k", b"3", ()), 0.0)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", _DiesAt(dies_at))
            with pytest.raises(_CrashError):
                archive.seal()
        resumed = PartitionArchive(folder, Topic.POOL, 0)
        start = resumed.next_offset
        assert start in (3, 4)
        for offset in range(start, 6):
            resumed.add(LogRecord("rods.pool", 0, offset, 1, b"k", str(offset).encode(), ()), 0.0)
        resumed.seal()
        assert [record.value for record in read_archive(folder, Topic.POOL)] == [str(n).encode() for n in range(6)]
        names = {path.name for path in partition_folder(folder, Topic.POOL, 0).glob("*.avro")}
        assert names == {segment.file for segment in read_manifest(partition_folder(folder, Topic.POOL, 0)).segments}


def test_a_segment_is_synced_before_its_name_and_its_name_before_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = _sealed(tmp_path, range(2))
    archive.add(LogRecord("rods.pool", 0, 2, 1, b"k", b"2", ()), 0.0)
    done = synced(monkeypatch)
    archive.seal()
    folder = partition_folder(tmp_path, Topic.POOL, 0)
    assert done == [
        ("sync", folder / f".{os.getpid()}.tmp"),
        ("name", folder / segment_name(2, 2)),
        ("sync", folder),
        ("sync", folder / MANIFEST),
    ]


def test_folders_and_schemas_are_on_disk_before_the_first_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = synced(monkeypatch)
    folder = tmp_path / "new" / "run" / "archive"
    keep_schemas(folder)
    _sealed(folder, range(2))
    first_entry = done.index(("sync", partition_folder(folder, Topic.POOL, 0) / MANIFEST))
    schemas = folder / "schemas"
    for named in (tmp_path, tmp_path / "new", tmp_path / "new" / "run", folder, folder / "pool", schemas):
        assert ("sync", named) in done[:first_entry], named
    texts = {path.name for path in AVRO_FOLDER.iterdir()}
    assert {path.name for path in schemas.iterdir()} == texts
    for name in texts:
        written = done.index(("sync", schemas / f".{os.getpid()}.{name}.tmp"))
        assert done[written + 1] == ("name", schemas / name), "its bytes before its name"
    last_name = max(n for n, (what, path) in enumerate(done) if what == "name" and path.parent == schemas)
    assert ("sync", schemas) in done[last_name:first_entry]
    done.clear()
    keep_schemas(folder)
    assert not [path for what, path in done if what == "name" and path.name != "index.json"], "whole ones stay"


def test_a_schema_that_was_cut_short_is_written_again_and_another_one_refused(tmp_path: Path) -> None:
    keep_schemas(tmp_path)
    path = tmp_path / "schemas" / "TaskRetired.v1.avsc"
    whole = path.read_bytes()
    for torn in (b"", whole[: len(whole) // 2], bytes(len(whole))):
        path.write_bytes(torn)
        (tmp_path / "schemas" / "index.json").write_bytes(torn)
        keep_schemas(tmp_path)
        assert path.read_bytes() == whole
        assert (tmp_path / "schemas" / "index.json").read_bytes() == (AVRO_FOLDER / "index.json").read_bytes()
    assert list((tmp_path / "schemas").glob("*.tmp")) == []
    path.write_bytes(whole.replace(b"mean", b"average"))
    with pytest.raises(ArchiveError, match=r"the schema TaskRetired.v1.avsc differs from the one that"):
        keep_schemas(tmp_path)


class _CrashError(Exception):
    pass


class _DiesAt:
    """A sync that fails at its n-th call, as the last thing a process does."""

    def __init__(self, step: int) -> None:
        self._left = step

    def __call__(self, _: int) -> None:
        if self._left == 0:
            raise _CrashError
        self._left -= 1


def _count_syncs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    archive = _sealed(folder, range(3))
    archive.add(LogRecord("rods.pool", 0, 3, 1, b"k", b"3", ()), 0.0)
    calls: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", calls.append)
        archive.seal()
    return len(calls)
