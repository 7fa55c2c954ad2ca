import ast
import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import faust
import pytest
from aiokafka.structs import TopicPartition
from faust.types import TP

from streams.service import faust_internals
from streams.service.app import build_app
from streams.service.faust_internals import AT_ONCE, VERSIONS, Delivery, RawSchema, buffered
from streams.service.settings import StreamsSettings

PLACES = (TopicPartition("trial.rollouts", 0), TopicPartition("trial.rollouts", 1))


@dataclass
class Record:
    """As a fetch brings it."""

    topic: str
    partition: int
    offset: int
    value: bytes = b"value"
    key: bytes = b"key"
    timestamp: int = 1_700_000_000_123
    timestamp_type: int = 0
    headers: tuple[Any, ...] = ()
    checksum: None = None
    serialized_key_size: int = 3
    serialized_value_size: int = 5


class Fetched:
    """A real app whose consumer is given what a fetch brings, with a buffer of so many events."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, buffer: int = 10) -> None:
        self.app = build_app(StreamsSettings("127.0.0.1:1", "trial.", 2, folder, buffer=buffer))
        self.consumer: Any = self.app.consumer
        channels: list[Any] = [agent.channel for agent in self.app.agents.values()]
        (self.topic,) = [channel for channel in channels if "trial.rollouts" in channel.topics]
        for place in PLACES:
            self.app.topics._tp_index[TP(*place)].add(self.topic)
            self.consumer._read_offset[TP(*place)] = 0
        self.active = {TP(*place) for place in PLACES}
        monkeypatch.setattr(self.consumer, "highwater", lambda place: 100 + place.partition)
        monkeypatch.setattr(type(self.app), "consumer_generation_id", 3)
        self.consumer.resume_flow()
        self.app.flow_control.resume()
        self.delivery = Delivery(self.app, self.consumer)

    async def deliver(self, records: dict[Any, list[Record]]) -> dict[Any, list[int]]:
        left = await self.delivery.deliver(records, self.active)
        return {place: [record.offset for record in batch] for place, batch in left.items()}

    def taken(self) -> list[tuple[int, int]]:
        queue = self.topic.queue
        messages = [queue.get_nowait().message for _ in range(queue.qsize())]
        return [(message.partition, message.offset) for message in messages]


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fetched:
    return Fetched(tmp_path, monkeypatch)


def batch(partition: int, offsets: Iterable[int]) -> dict[Any, list[Record]]:
    return {PLACES[partition]: [Record("trial.rollouts", partition, offset) for offset in offsets]}


async def test_messages_that_follow_what_was_read_go_to_the_buffer_as_faust_makes_them(fetched: Fetched) -> None:
    assert await fetched.deliver(batch(0, [1, 2]) | batch(1, [1])) == {}
    event = fetched.topic.queue._queue[0]
    message = event.message
    assert isinstance(event, faust.Event) and (event.key, event.value) == (b"key", b"value")
    assert (message.generation_id, message.tp, message.timestamp) == (3, TP(*PLACES[0]), 1_700_000_000.123)
    assert message.refcount == 1 and not message.acked
    assert fetched.taken() == [(0, 1), (0, 2), (1, 1)]
    assert fetched.consumer._read_offset[TP(*PLACES[0])] == 2
    assert fetched.app.monitor.tp_end_offsets == {TP(*PLACES[0]): 100, TP(*PLACES[1]): 101}


async def test_a_message_after_a_gap_or_read_before_is_left_to_faust_with_all_behind_it(fetched: Fetched) -> None:
    fetched.consumer._read_offset[TP(*PLACES[1])] = 5
    assert await fetched.deliver(batch(0, [1, 3, 4]) | batch(1, [4, 5])) == {PLACES[0]: [3, 4], PLACES[1]: [4, 5]}
    assert fetched.taken() == [(0, 1)]


@pytest.mark.parametrize("read", [None, 7])
async def test_the_first_message_of_a_partition_or_after_a_seek_begins_a_sequence(
    fetched: Fetched, read: int | None
) -> None:
    fetched.consumer._read_offset[TP(*PLACES[0])] = read
    assert await fetched.deliver(batch(0, [7, 8, 10])) == {PLACES[0]: [10]}
    assert fetched.taken() == [(0, 7), (0, 8)] and fetched.consumer._read_offset[TP(*PLACES[0])] == 8


@pytest.mark.parametrize("why", ["flow", "consumer", "pending sends", "commit by count", "not held", "two readers"])
async def test_what_needs_the_care_of_faust_is_left_to_it(fetched: Fetched, why: str) -> None:
    match why:
        case "flow":
            fetched.app.flow_control.suspend()
        case "consumer":
            fetched.consumer.stop_flow()
        case "pending sends":
            fetched.app.producer.buffer.put(object())
        case "commit by count":
            fetched.consumer._n_acked = fetched.consumer._commit_every
        case "not held":
            fetched.active.clear()
        case "two readers":
            fetched.app.topics._tp_index[TP(*PLACES[0])].add(fetched.topic.clone())
    assert await fetched.deliver(batch(0, [1])) == {PLACES[0]: [1]}
    assert fetched.taken() == []


async def test_a_full_buffer_is_waited_for_and_takes_no_partition_out_of_the_fetch(
    fetched: Fetched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faust_internals, "FULL_BUFFER_SECONDS", 0.0)
    waiting = asyncio.create_task(fetched.deliver(batch(0, range(1, 26)) | batch(1, [1])))
    seen: list[tuple[int, int]] = []
    while not waiting.done():
        await asyncio.sleep(0)
        assert fetched.topic.queue.qsize() <= 10
        seen += fetched.taken()
    seen += fetched.taken()
    assert await waiting == {}
    assert [offset for partition, offset in seen if not partition] == list(range(1, 26)) and (1, 1) in seen
    assert not fetched.consumer._buffered_partitions


@pytest.mark.parametrize("what", ["flow", "group"])
async def test_what_waits_for_room_when_the_flow_ends_or_the_group_changes_is_dropped(
    fetched: Fetched, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(faust_internals, "FULL_BUFFER_SECONDS", 0.0)
    waiting = asyncio.create_task(fetched.deliver(batch(0, range(1, 26))))
    await asyncio.sleep(0)
    if what == "flow":
        fetched.consumer.stop_flow()
    else:
        monkeypatch.setattr(type(fetched.app), "consumer_generation_id", 4)
    assert await waiting == {}
    assert fetched.taken() == [(0, offset) for offset in range(1, 11)]


async def test_a_reader_is_given_some_of_what_its_buffer_holds_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    fetched = Fetched(tmp_path, monkeypatch, buffer=100)
    await fetched.deliver(batch(0, range(1, AT_ONCE + 4)))
    stream: Any = type("Stream", (), {"channel": fetched.topic})
    assert [event.message.offset for event in buffered(fetched.app, stream)] == list(range(1, AT_ONCE + 1))
    assert [event.message.offset for event in buffered(fetched.app, stream)] == [AT_ONCE + n for n in (1, 2, 3)]
    assert list(buffered(fetched.app, stream)) == []
    assert set(fetched.app.monitor.stream_inbound_time) == {TP(*PLACES[0])}


def test_topics_carry_bytes_as_they_are(fetched: Fetched) -> None:
    assert all(isinstance(topic.schema, RawSchema) for topic in fetched.app.topics)


def test_the_file_holds_for_the_installed_versions() -> None:
    assert {name: metadata.version(name) for name in VERSIONS} == VERSIONS


def test_no_other_module_of_the_service_uses_a_private_name_of_faust() -> None:
    for path in Path(faust_internals.__file__).parent.glob("*.py"):
        if path != Path(faust_internals.__file__):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            private = {n for n in nodes if isinstance(n, ast.Attribute) and n.attr.startswith("_") and n.attr[1] != "_"}
            assert {ast.unparse(node.value) for node in private} <= {"self", "os"}, path
