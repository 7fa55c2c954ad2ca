"""The streams service as a real process on a live broker."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from eventlog.reader import end_offsets
from rods.brokers.embedded import create_topics
from rods.brokers.process import claim_port
from schemas.codec import encode
from schemas.pool import EventRefused
from schemas.topics import Topic
from streams.errors import StreamError
from streams.service.settings import StreamsSettings
from streams.service.worker import wait_for_topics
from tests.integration.faults.bench import Bench, bench
from tests.integration.live_broker import LiveBrokers
from tests.streams.rollout_log import result

PARTITIONS = 4


@pytest.fixture
async def four(live: LiveBrokers, tmp_path: Path) -> AsyncIterator[Bench]:
    with live.serve(tmp_path) as served:
        async with bench(*served, PARTITIONS, tmp_path) as made:
            yield made


async def committed(four: Bench) -> dict[tuple[str, int], int]:
    admin = AIOKafkaAdminClient(bootstrap_servers=four.address)
    await admin.start()
    try:
        partitions = [TopicPartition(*source) for source in four.sources]
        offsets = await admin.list_consumer_group_offsets(f"{four.prefix}streams", partitions=partitions)
    finally:
        await admin.close()
    return {(place.topic, place.partition): found.offset for place, found in offsets.items()}


async def test_steps_are_measured_sealed_and_selected(four: Bench) -> None:
    worker = await four.start()
    for step in (1, 2, 3):
        await four.results(step)
        await four.measured(len(four.tasks) * step)
        await four.barriers(step, last=step == 2)
        await four.closed(step)
    await four.assert_exact(3)
    assert await worker.end() == 0
    assert await committed(four) == await end_offsets(four.address, four.sources)


async def test_a_worker_tells_its_readiness_and_a_lag_that_grows_where_it_stopped(four: Bench) -> None:
    port = claim_port(0)
    await four.start(metrics_port=port)
    assert 503 in await polled(port, "/readyz", until=200)
    await four.results(1)
    await four.put(b"\xc3\x01" + b"12345678" + b"of a newer writer", 1)
    for _ in range(3):
        await four.put(result("more"), 1)
    name = Topic.ROLLOUTS.named(four.prefix)
    lags = [f'rods_streams_lag{{partition="{n}",topic="{name}"}} {4 if n == 1 else 0}.0' for n in range(PARTITIONS)]
    expect = ['notices_total{notice="unknown_schema"} 1.0', *lags]
    shown = ""
    while not all(line in shown for line in expect):
        await asyncio.sleep(0.1)
        shown = (await fetched(port, "/metrics"))[1]
    assert (await fetched(port, "/healthz"))[0] == 200


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


async def test_poison_goes_to_the_dead_letters_and_the_stream_goes_on(four: Bench) -> None:
    await four.start()
    await four.put(encode(result())[:40], 0)
    await four.put(b"x" * 200_000, 1)
    await four.put(result("nobody's", k=9), 2)
    await four.put(b"garbage", 0, Topic.SEALS)
    await four.step(1)
    letters = await four.events(Topic.DEAD_LETTERS, lambda events: len({letter.natural_key for letter in events}) >= 4)
    assert all(isinstance(letter, EventRefused) for letter in letters)
    assert {letter.topic for letter in letters} == {t.named(four.prefix) for t in (Topic.ROLLOUTS, Topic.SEALS)}
    assert max(len(letter.value) for letter in letters) == 64 * 1024
    await four.assert_exact(1)


async def test_a_worker_whose_topics_are_not_there_says_so(live: LiveBrokers, tmp_path: Path) -> None:
    with live.serve(tmp_path) as served:
        settings = StreamsSettings(*served, PARTITIONS, tmp_path, topics_seconds=0.1)
        with pytest.raises(StreamError, match=rf"{re.escape(served.prefix)}rollouts"):
            await wait_for_topics(settings)
        await create_topics(*served, PARTITIONS + 1)
        with pytest.raises(StreamError, match="4 partitions are not there"):
            await wait_for_topics(settings)
