import socket

import pytest

from eventlog.client import log_producer
from eventlog.errors import LogError
from eventlog.reader import LogTail, end_offsets, ends_if_answered, read_all
from eventlog.writer import send
from rods.brokers.embedded import create_topics
from schemas.topics import Topic
from tests.log_writing import send_all


async def _write(address: str, topic: str, partition: int, values: list[bytes]) -> list[int]:
    async with log_producer(address) as producer:
        return await send_all(producer, topic, partition, [("k", value) for value in values])


async def test_what_is_sent_is_read_in_order_from_its_partition_up_to_the_end_at_the_call(any_broker: str) -> None:
    await create_topics(any_broker, "order.", 2)
    topic = Topic.ROLLOUTS.named("order.")
    values = [f"value {number}".encode() for number in range(1200)]
    assert await _write(any_broker, topic, 1, values) == list(range(1200))
    records = [record async for record in read_all(any_broker, topic, 1)]
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(1200))
    assert records[0].key == b"k"
    assert [record async for record in read_all(any_broker, topic, 0)] == []
    assert [record.offset async for record in read_all(any_broker, topic, 1, 1190, 1193)] == [1190, 1191, 1192]


async def test_the_end_of_a_partition_counts_every_record_of_its_last_batch(any_broker: str) -> None:
    await create_topics(any_broker, "end.", 3)
    topic = Topic.ROLLOUTS.named("end.")
    await _write(any_broker, topic, 1, [b"x"] * 321)
    await _write(any_broker, topic, 2, [b"x"])
    assert await end_offsets(any_broker, [(topic, 0), (topic, 1), (topic, 2)]) == {
        (topic, 0): 0,
        (topic, 1): 321,
        (topic, 2): 1,
    }
    assert [record async for record in read_all(any_broker, topic, 1, 321)] == []


async def test_an_event_near_8_mib_travels(any_broker: str) -> None:
    await create_topics(any_broker, "large.", 1)
    topic = Topic.TRAJECTORIES.named("large.")
    value = bytes(8 * 1024 * 1024)
    async with log_producer(any_broker) as producer:
        assert await send(producer, topic, 0, "task", value) == 0
    assert [record.value async for record in read_all(any_broker, topic, 0)] == [value]


async def test_an_offset_that_the_broker_does_not_have_stops_the_reader(broker: str) -> None:
    await create_topics(broker, "lost.", 1)
    with pytest.raises(LogError, match=r"lost\.pool/0 holds offsets 0 to 0, and 7 is to be read next"):
        async with LogTail(broker, {(Topic.POOL.named("lost."), 0): 7}):
            pass


async def test_a_broker_that_takes_calls_and_answers_none_ends_the_question_for_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("eventlog.reader.ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(LogError, match="the broker did not say in 0 s where its partitions end"):
            await end_offsets(address, [("rods.pool", 0)])


async def test_a_broker_that_does_not_answer_has_told_no_end() -> None:
    assert await ends_if_answered("127.0.0.1:1", [("rods.pool", 0)]) == {}
