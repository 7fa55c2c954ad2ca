"""One thread for blocking work, so that the event loop keeps answering the broker while models and simulators compute.

The thread is a daemon: a process that is told to end does not wait for it. It is one and the same for all work, since
numerical libraries keep state per thread.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
AHEAD = 32


class _Item(NamedTuple, Generic[T]):
    value: T


class _End(NamedTuple):
    error: Exception | None


class WorkThread:
    """Runs what it is given, one piece after the other."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._busy = threading.Event()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    @property
    def busy(self) -> bool:
        """Whether work is going on right now."""
        return self._busy.is_set()

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, or its exception."""
        async for result in self.stream(lambda: iter((work(),))):
            return result
        raise AssertionError("work gives one result")

    async def stream(self, work: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        """The items of `work` as they come, at most `AHEAD` of them not yet taken. Leaving early abandons the rest."""
        loop = asyncio.get_running_loop()
        results: asyncio.Queue[_Item[T] | _End] = asyncio.Queue()
        room = threading.Semaphore(AHEAD)
        abandoned = threading.Event()

        def put(result: _Item[T] | _End) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever asked
                loop.call_soon_threadsafe(results.put_nowait, result)

        self._work.put(lambda: _pump(work, put, room, abandoned))
        try:
            while isinstance(result := await results.get(), _Item):
                room.release()
                yield result.value
            if result.error is not None:
                raise result.error
        finally:
            abandoned.set()
            room.release()

    def _run(self) -> None:
        while True:
            work = self._work.get()
            self._busy.set()
            work()
            self._busy.clear()


def _pump(
    work: Callable[[], Iterator[T]],
    put: Callable[[Any], None],
    room: threading.Semaphore,
    abandoned: threading.Event,
) -> None:
    error: Exception | None = None
    try:
        for value in work():
            room.acquire()
            if abandoned.is_set():
                break
            put(_Item(value))
    except Exception as raised:  # noqa: BLE001 - it is raised again where the work was asked for
        error = raised
    put(_End(error))
