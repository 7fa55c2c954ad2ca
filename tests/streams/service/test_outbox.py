import asyncio

import pytest

from schemas.topics import Topic
from streams.service import outbox
from streams.service.outbox import Outbox
from tests.streams.live_stream import App, until
from tests.streams.rollout_log import result


async def test_settled_waits_for_every_acknowledgement() -> None:
    app = App()
    app.producer.hold = True
    box = Outbox(app, "rods.")
    for _ in range(3):
        await box.post(Topic.MEASUREMENTS, 1, "t", result())
    task = asyncio.create_task(box.settled())
    await asyncio.sleep(0.01)
    assert not task.done()
    app.producer.release()
    await task
    assert [partition for _, partition, _ in app.producer.sent] == [1, 1, 1]


async def test_too_many_in_flight_make_the_next_one_wait() -> None:
    app = App()
    app.producer.hold = True
    box = Outbox(app, "rods.")
    for _ in range(outbox.MAX_IN_FLIGHT):
        await box.post(Topic.MEASUREMENTS, 0, "t", result())
    task = asyncio.create_task(box.post(Topic.MEASUREMENTS, 0, "t", result()))
    await until(lambda: len(app.producer.sent) >= outbox.MAX_IN_FLIGHT)
    await asyncio.sleep(3 * outbox.BURST_SECONDS)
    assert not task.done() and len(app.producer.sent) == outbox.MAX_IN_FLIGHT
    app.producer.release()
    await task
    app.producer.hold = False
    await box.settled()
    assert len(app.producer.sent) == outbox.MAX_IN_FLIGHT + 1


async def test_nothing_posted_is_settled_at_once() -> None:
    await Outbox(App(), "rods.").settled()


async def test_what_nobody_waits_for_leaves_in_one_burst_and_in_order() -> None:
    app = App()
    box = Outbox(app, "rods.")
    tasks = [f"t{number}" for number in range(20)]
    for task in tasks:
        await box.post(Topic.MEASUREMENTS, 0, task, result(task))
    assert app.producer.sent == []
    await until(lambda: bool(app.producer.sent))
    assert [event.task for event in app.producer.events(Topic.MEASUREMENTS)] == tasks


async def test_a_send_that_fails_by_itself_is_told_to_whoever_waits_next() -> None:
    app = App()
    app.producer.failure = RuntimeError("no leader")
    box = Outbox(app, "rods.")
    await box.post(Topic.MEASUREMENTS, 0, "t", result())
    await until(lambda: bool(app.producer.sent))
    with pytest.raises(RuntimeError, match="no leader"):
        await box.settled()
