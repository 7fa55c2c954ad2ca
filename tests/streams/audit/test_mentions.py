"""A task's story told from the bytes that name it is the one told from every decoded record."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import pytest

from eventlog.reader import LogRecord
from schemas.codec import decode, encode
from schemas.errors import SchemaError
from schemas.pool import TaskRegistered, VariantVerified
from schemas.rollouts import RolloutFinished
from schemas.topics import Topic
from streams.archive.segment import Places
from streams.audit.load.source import ArchiveSource, LogSource
from streams.audit.mentions import Mentions
from streams.audit.quick_seal import GroupReader
from streams.audit.trace import lineage
from tests.streams.audit.forge import GOLDEN, places
from tests.streams.audit.test_quick import RandomLog, folded


def every_record(source: LogSource, topic: Topic, partition: int, _: Places) -> Iterator[LogRecord]:
    return source.records(topic, partition)


@pytest.mark.parametrize("archive", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_a_story_from_bytes_is_that_from_decoded_records(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ArchiveSource(archive)
    tasks = [event.definition.task for _, event in places(archive, Topic.POOL, _defines)]
    found = {task: told(source, task) for task in tasks}
    monkeypatch.setattr("streams.audit.trace.records_at", every_record)
    monkeypatch.setattr("streams.audit.quick_seal.SealForm.match", lambda *_: None)
    assert found == {task: told(source, task) for task in tasks}


def told(source: LogSource, task: str) -> list[dict[str, object]]:
    return [story.document() for _, story in lineage(source, task).tasks()]


def _defines(event: object) -> bool:
    return isinstance(event, TaskRegistered | VariantVerified)


def decoded(frames: Iterable[bytes]) -> Iterator[tuple[bytes, object]]:
    for frame in frames:
        try:
            yield frame, decode(frame)
        except SchemaError:
            continue


@pytest.mark.parametrize("seed", range(6))
def test_groups_read_from_a_seal_and_where_they_stand_are_those_of_the_decoded_one(seed: int) -> None:
    log = RandomLog(seed)
    frames = log.made()
    seals, _ = folded(frames)
    names = sorted({group.task for seal in seals for group in seal.groups if group.task})
    for count in (1, 3, 12):
        tasks = set(Random(seed).sample(names, count))
        mentions, reader = Mentions(tasks), GroupReader(tasks)
        for seal in seals:
            frame, own = encode(seal), [group for group in seal.groups if group.task in tasks]
            read = reader.read(frame)
            assert read is None or (read.epoch, read.step, read.groups) == (seal.epoch, seal.step, own)
            assert len(mentions.grouped(frame)) == len(own)
        for frame, event in decoded(frames):
            if isinstance(event, RolloutFinished) and event.task in tasks and event.purpose != "none":
                assert len(mentions.grouped(frame)) == 1


def test_groups_of_plain_names_are_read_without_a_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.streams.audit.test_quick.TASKS", tuple(f"task-{n:03d}" for n in range(40)))
    log = RandomLog(4)
    log.slots, log.turns, log.categories = (1, 16), (3, 4), ("base", "miss_func")
    seals, _ = folded(log.made())
    reader = GroupReader({"task-001"})
    assert None not in [reader.read(encode(seal)) for seal in seals]
