"""Events on their way out: encoded at once, sent in bursts, and awaited before anything relies on them."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from schemas.codec import encode
from schemas.envelope import Event
from schemas.topics import Topic

MAX_IN_FLIGHT = 8192
BURST_SECONDS = 0.02


class Outbox:
    """Sends to explicit partitions, to each in the order of `post`. `settled` is how a stream knows that the broker has
    what was posted.

    The producer sends what it is given at once: an event at a time it made a request an event, a fifth of a worker's
    time. What nobody waits for leaves after `BURST_SECONDS`. A producer's flush may return early, so the futures of
    the sends are awaited themselves, by each of those who wait at the same time. More than `MAX_IN_FLIGHT`
    unacknowledged events make `post` wait: back-pressure instead of memory.
    """

    def __init__(self, app: Any, prefix: str) -> None:
        self._app = app
        self._names = {topic: topic.named(prefix) for topic in Topic}
        self._posted: dict[tuple[str, int], list[tuple[bytes, bytes]]] = {}
        self._count = self._settled = 0
        self._sent: dict[Awaitable[Any], None] = {}
        self._waiting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sending = asyncio.Lock()

    async def post(self, topic: Topic, partition: int, key: str, event: Event) -> bytes:
        """Schedules an event; its bytes. Raises what an earlier one failed with, once too many are in flight."""
        if self._count - self._settled >= MAX_IN_FLIGHT:
            await self.settled()
        frame = encode(event)
        self._posted.setdefault((self._names[topic], partition), []).append((key.encode(), frame))
        self._count += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BURST_SECONDS, self._burst)
        return frame

    async def settled(self) -> None:
        """Returns once the broker has acknowledged everything posted so far. Raises where it refused."""
        count = self._count
        await asyncio.shield(self._turn())
        sent = list(self._sent)
        await asyncio.gather(*sent)
        for acknowledged in sent:
            self._sent.pop(acknowledged, None)
        self._settled = max(self._settled, count)

    def _burst(self) -> None:
        self._timer = None
        self._turn()

    def _turn(self) -> "asyncio.Task[None]":
        """The send that will take what is posted now: the one that waits for its turn, where one does."""
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(self._send())
        return self._waiting

    async def _send(self) -> None:
        """Every partition's at once, so that they share a request. A failure is for whoever waits next."""
        async with self._sending:
            self._waiting = None
            posted, self._posted = self._posted, {}
            sends = [self._app.producer.send_many(*place, pairs) for place, pairs in posted.items()]
            for sent in await asyncio.gather(*sends, return_exceptions=True):
                self._sent.update(dict.fromkeys([_failed(sent)] if isinstance(sent, BaseException) else sent))


def _failed(error: BaseException) -> Awaitable[Any]:
    failed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    failed.set_exception(error)
    return failed
