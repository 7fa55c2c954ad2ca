import asyncio
import threading
from collections.abc import Iterator

import pytest

from producers.work_thread import AHEAD, WorkThread


async def test_items_arrive_in_order_while_the_loop_stays_free() -> None:
    thread = WorkThread("test")
    answered = threading.Event()

    def work() -> Iterator[int]:
        yield 1
        answered.wait()
        yield 2

    got = []
    async for item in thread.stream(work):
        got.append(item)
        asyncio.get_running_loop().call_soon(answered.set)
    assert got == [1, 2]


async def test_an_error_is_raised_where_the_work_was_asked_for() -> None:
    def fails() -> int:
        raise LookupError("no")

    thread = WorkThread("test")
    with pytest.raises(LookupError, match="no"):
        await thread.run(fails)
    assert await thread.run(lambda: 7) == 7


async def test_work_runs_at_most_so_many_items_ahead() -> None:
    made: list[int] = []

    def work() -> Iterator[int]:
        for number in range(10 * AHEAD):
            made.append(number)
            yield number

    stream = WorkThread("test").stream(work)
    taken = 0
    async for _ in stream:
        taken += 1
        assert len(made) <= taken + AHEAD + 1
    assert taken == 10 * AHEAD


async def test_leaving_early_abandons_the_rest() -> None:
    closed = threading.Event()

    def work() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    thread = WorkThread("test")
    stream = thread.stream(work)
    assert await anext(stream) == 1
    await stream.aclose()
    assert await thread.run(closed.is_set)
