"""The streams service as a real process on a live broker."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from rods.brokers.embedded import create_topics
from rods.brokers.process import claim_port
from schemas.codec import decode, encode
from schemas.pool import EventRefused
from schemas.rollouts import TaskMeasured
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed
from schemas.topics import Topic, partition_of
from streams.errors import StreamError
from streams.service.settings import StreamsSettings
from streams.service.worker import wait_for_topics
from tests.integration.live_broker import LiveBrokers
from tests.integration.stream_topics import StreamsWorker, StreamTopics, decoded, plain_seals, plain_selections
from tests.streams.rollout_log import barrier, expected, result, started

PARTITIONS = 4
TASKS = [f"task-{index}" for index in range(24)]
Start = Callable[[], StreamsWorker]


@pytest.fixture
async def topics(live: LiveBrokers, tmp_path: Path) -> AsyncIterator[StreamTopics]:
    with live.serve(tmp_path) as served:
        await create_topics(served.address, served.prefix, PARTITIONS)
        producer = AIOKafkaProducer(bootstrap_servers=served.address, acks="all")
        await producer.start()
        try:
            yield StreamTopics(served, PARTITIONS, producer)
        finally:
            await asyncio.wait_for(producer.stop(), 240)


@pytest.fixture
def start(topics: StreamTopics, tmp_path: Path) -> Iterator[Start]:
    workers: list[StreamsWorker] = []

    def one() -> StreamsWorker:
        workers.append(StreamsWorker(topics, tmp_path / f"streams-{len(workers)}"))
        return workers[-1]

    yield one
    for worker in workers:
        worker.kill()


def passed(task: str, step: int) -> tuple[int | None, ...]:
    number = int(task.removeprefix("task-"))
    return (number % 3, step % 3, None if number % 5 == 0 else 1, (number + step) % 3)


def own(partition: int) -> list[str]:
    return [task for task in TASKS if partition_of(task, PARTITIONS) == partition]


async def put_results(topics: StreamTopics, step: int) -> None:
    """Every result twice, once with another outcome, and one of the step before."""
    for partition in range(PARTITIONS):
        events: list[Any] = [started(1)] if step == 1 else [result(own(partition)[0], step=step - 1)]
        for task in own(partition):
            events += [result(task, passed(task, step), step=step), result(task, (2, 2, 2, 2), step=step)]
        await topics.put_all(events, partition)


async def put_barriers(topics: StreamTopics, step: int) -> None:
    for partition in range(PARTITIONS):
        groups = [expected(task, step=step) for task in own(partition)] + [expected(f"gone-{partition}", step=step)]
        event = barrier(*groups, step=step, partition=partition, partitions=PARTITIONS, last=step == 2)
        await topics.put(event, partition)


async def assert_exact(topics: StreamTopics, steps: int) -> None:
    """What stands on the topics equals a plain fold of the final log from offset 0."""
    seals = plain_seals(await topics.all(Topic.ROLLOUTS), PARTITIONS)
    selections, seeds = plain_selections(seals)
    assert [seal.step for seal in seals] == [step for step in range(1, steps + 1) for _ in range(PARTITIONS)]
    assert any(seeds) and len(selections) == steps
    log = [decoded(record.value) for record in await topics.all(Topic.SEALS)]
    found = {event.natural_key: event for event in log if isinstance(event, PartitionSealed)}
    assert sorted(found.values(), key=lambda seal: (seal.step, seal.partition)) == seals
    closed = {event.natural_key: event for event in log if isinstance(event, SelectionClosed)}
    assert [closed[selection.natural_key] for selection in selections] == selections and len(closed) == steps
    await topics.events(Topic.SEEDS, len(seeds), BoundarySeedSelected)
    written = await topics.all(Topic.SEEDS)
    assert {(r.partition, decode(r.value)) for r in written} == {(partition_of(s.task, PARTITIONS), s) for s in seeds}


def sources(topics: StreamTopics) -> list[TopicPartition]:
    rollouts, seals = (topic.named(topics.prefix) for topic in (Topic.ROLLOUTS, Topic.SEALS))
    return [*(TopicPartition(rollouts, number) for number in range(PARTITIONS)), TopicPartition(seals, 0)]


async def committed(topics: StreamTopics) -> dict[TopicPartition, int]:
    admin = AIOKafkaAdminClient(bootstrap_servers=topics.address)
    await admin.start()
    try:
        offsets = await admin.list_consumer_group_offsets(f"{topics.prefix}streams", partitions=sources(topics))
    finally:
        await admin.close()
    return {partition: found.offset for partition, found in offsets.items()}


async def ends(topics: StreamTopics) -> dict[TopicPartition, int]:
    consumer = AIOKafkaConsumer(bootstrap_servers=topics.address)
    await consumer.start()
    try:
        found: dict[TopicPartition, int] = await consumer.end_offsets(sources(topics))
    finally:
        await consumer.stop()
    return found


async def test_steps_are_measured_sealed_and_selected(topics: StreamTopics, start: Start) -> None:
    worker = start()
    for step in (1, 2, 3):
        await put_results(topics, step)
        await topics.events(Topic.MEASUREMENTS, len(TASKS) * step, TaskMeasured)
        await put_barriers(topics, step)
        await topics.events(Topic.SEALS, step, SelectionClosed)
    await assert_exact(topics, 3)
    assert worker.end() == 0
    assert await committed(topics) == await ends(topics)


async def test_a_worker_tells_its_readiness_and_a_lag_that_grows_where_it_stopped(
    topics: StreamTopics, tmp_path: Path
) -> None:
    port = claim_port(0)
    worker = StreamsWorker(topics, tmp_path / "streams", metrics_port=port)
    try:
        assert 503 in await polled(port, "/readyz", until=200)
        await put_results(topics, 1)
        await topics.put(b"\xc3\x01" + b"12345678" + b"of a newer writer", 1)
        await topics.put_all([result(own(1)[0], step=1)] * 3, 1)
        lags = [lag(topics, p, 4 if p == 1 else 0) for p in range(4)]
        expect = ['notices_total{notice="unknown_schema"} 1.0', *lags]
        shown = ""
        while not all(line in shown for line in expect):
            await asyncio.sleep(0.1)
            shown = (await fetched(port, "/metrics"))[1]
        assert (await fetched(port, "/healthz"))[0] == 200
    finally:
        assert worker.end() == 0


def lag(topics: StreamTopics, partition: int, events: int) -> str:
    return f'rods_streams_lag{{partition="{partition}",topic="{topics.prefix}rollouts"}} {events}.0'


async def polled(port: int, path: str, until: int) -> set[int]:
    """The answers seen before the wanted one."""
    seen: set[int] = set()
    while until not in seen:
        with suppress(aiohttp.ClientConnectionError):
            seen.add((await fetched(port, path))[0])
    return seen


async def fetched(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_poison_goes_to_the_dead_letters_and_the_stream_goes_on(topics: StreamTopics, start: Start) -> None:
    start()
    await topics.put(encode(result())[:40], 0)
    await topics.put(b"x" * 200_000, 1)
    await topics.put(result(TASKS[0], k=9), 2)
    await topics.put(b"garbage", 0, Topic.SEALS)
    await put_results(topics, 1)
    await put_barriers(topics, 1)
    await topics.events(Topic.SEALS, 1, SelectionClosed)
    letters = await topics.events(Topic.DEAD_LETTERS, 3, EventRefused)
    assert {letter.topic for letter in letters} == {
        topic.named(topics.prefix) for topic in (Topic.ROLLOUTS, Topic.SEALS)
    }
    assert max(len(letter.value) for letter in letters) == 64 * 1024
    await assert_exact(topics, 1)


async def test_a_worker_whose_topics_are_not_there_says_so(live: LiveBrokers, tmp_path: Path) -> None:
    with live.serve(tmp_path) as served:
        settings = StreamsSettings(*served, PARTITIONS, tmp_path, topics_seconds=0.1)
        with pytest.raises(StreamError, match=rf"{re.escape(served.prefix)}rollouts"):
            await wait_for_topics(settings)
        await create_topics(*served, PARTITIONS + 1)
        with pytest.raises(StreamError, match="4 partitions are not there"):
            await wait_for_topics(settings)


async def test_an_older_learner_that_wakes_changes_nothing(topics: StreamTopics, start: Start) -> None:
    start()
    await put_results(topics, 1)
    await topics.put(started(2), 0)
    await topics.put(barrier(step=1, partitions=PARTITIONS), 0)
    for partition in range(PARTITIONS):
        groups = [expected(task) for task in own(partition)]
        generation = 2 if partition == 0 else 1
        await topics.put(barrier(*groups, partition=partition, partitions=PARTITIONS, generation=generation), partition)
    await topics.events(Topic.SEALS, 1, SelectionClosed)
    await assert_exact(topics, 1)
