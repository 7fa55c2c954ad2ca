"""Streams workers under the reported failures of their frameworks and the schedules that once lost events."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from rods.brokers.embedded import EmbeddedBroker
from rods.brokers.kafka import KafkaBroker
from rods.brokers.process import claim_port
from tests.integration.faults.bench import Bench, bench
from tests.integration.faults.framework import REPORTED, twelve_partitions_with_three_workers
from tests.integration.faults.named import NAMED

Scenario = Callable[[Bench], Awaitable[None]]
SCENARIOS: tuple[Scenario, ...] = (*NAMED, *REPORTED)
AT_A_TIME = 8
BROKERS = ("embedded", pytest.param("kafka", marks=pytest.mark.kafka))


@pytest.fixture(scope="module", params=BROKERS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[EmbeddedBroker | KafkaBroker]":
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "embedded":
        with EmbeddedBroker(folder / "broker.log") as embedded:
            yield embedded
        return
    if not os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME names no Apache Kafka")
    with KafkaBroker(folder / "kafka", folder / "broker.log", claim_port(0)) as kafka:
        yield kafka


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    request: pytest.FixtureRequest, broker: EmbeddedBroker | KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, "asyncio.Task[None]"]]:
    """The scenarios that were asked for, a few at a time: each test awaits its own."""
    room = asyncio.Semaphore(AT_A_TIME)

    async def one(number: int, scenario: Scenario) -> None:
        partitions = 12 if scenario is twelve_partitions_with_three_workers else 4
        folder, empties = tmp_path_factory.mktemp("scenario"), isinstance(broker, KafkaBroker)
        async with room, bench(broker.address, f"trial-{number}.", partitions, folder, empties=empties) as made:
            await scenario(made)

    asked = {item.callspec.params.get("scenario") for item in request.session.items if hasattr(item, "callspec")}
    tasks = {s.__name__: asyncio.create_task(one(n, s)) for n, s in enumerate(SCENARIOS) if s in asked}
    try:
        yield tasks
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.__name__ for scenario in SCENARIOS])
async def test_nothing_is_lost_and_nothing_counted_twice_after(
    running: dict[str, "asyncio.Task[None]"], scenario: Scenario
) -> None:
    await running[scenario.__name__]


@pytest.mark.kafka
async def test_nothing_is_lost_where_the_broker_is_killed_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """aiokafka#1154: workers that went through it go on, or end and are started again."""
    caplog.set_level(logging.CRITICAL, "aiokafka")
    with KafkaBroker(tmp_path / "kafka", tmp_path / "broker.log", claim_port(0)) as kafka:
        async with bench(kafka.address, "back.", 4, tmp_path) as made:
            await made.start(stuck_seconds=15.0)
            await made.start(stuck_seconds=15.0)
            await made.step(1)
            await made.results(2, made.tasks[:12])
            assert kafka.pid is not None
            os.kill(kafka.pid, signal.SIGKILL)
            while kafka.alive:
                await asyncio.sleep(0.05)
            kafka.__enter__()
            await made.results(2, made.tasks[12:])
            await made.barriers(2)
            await made.closed(2)
            await made.step(3)
            await made.assert_exact(3)
