import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import faust
import pytest

from streams.service import transport
from streams.service.app import build_app
from streams.service.settings import StreamsSettings
from streams.service.transport import RawSchema


@pytest.fixture
def app(tmp_path: Path) -> faust.App:
    return build_app(StreamsSettings("127.0.0.1:1", "trial.", 3, tmp_path))


async def waited(app: faust.App, delivery: Callable[[], Awaitable[Any]], other: Callable[[], Awaitable[Any]]) -> Any:
    return await app.consumer.wait_first(delivery(), other())


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_delivery_that_waits_for_nothing_makes_no_task(app: faust.App) -> None:
    async def delivered() -> int:
        return len(asyncio.all_tasks())

    results = await waited(app, delivered, forever)
    assert results.results == [1] and not results.stopped


async def test_a_delivery_that_waits_is_taken_up_where_it_stood(
    app: faust.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "FULL_BUFFER_SECONDS", 0.0)
    passed: list[int] = []

    async def delivered() -> str:
        for number in range(3):
            passed.append(number)
            await asyncio.sleep(0.001)
        return "taken"

    assert (await waited(app, delivered, forever)).results == ["taken"]
    assert passed == [0, 1, 2]


@pytest.mark.parametrize("sleeps", [0, 1])
async def test_a_delivery_that_fails_fails_the_wait(app: faust.App, sleeps: int) -> None:
    async def delivered() -> None:
        for _ in range(sleeps):
            await asyncio.sleep(0)
        raise ValueError("poison")

    with pytest.raises(ValueError, match="poison"):
        await waited(app, delivered, forever)


async def test_a_flow_that_is_suspended_cancels_a_delivery_that_waits(app: faust.App) -> None:
    cancelled: list[bool] = []

    async def delivered() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def suspended() -> str:
        return "suspended"

    assert (await waited(app, delivered, suspended)).results == ["suspended"]
    await asyncio.sleep(0)
    assert cancelled == [True]


def test_topics_carry_bytes_as_they_are(app: faust.App) -> None:
    assert all(isinstance(topic.schema, RawSchema) for topic in app.topics)
