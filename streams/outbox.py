"""Events on their way out: scheduled at once, batched by the producer, and awaited before anything relies on them."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from schemas.codec import encode
from schemas.envelope import Event
from schemas.topics import Topic

MAX_IN_FLIGHT = 2000


class Outbox:
    """Sends to explicit partitions. `settled` is how a stream knows that the broker has what was posted.

    A producer's flush may return early, so the futures of the sends are awaited themselves. More than
    `MAX_IN_FLIGHT` unacknowledged events make `post` wait: back-pressure instead of memory.
    """

    def __init__(self, app: Any, prefix: str) -> None:
        self._app = app
        self._prefix = prefix
        self._sent: list[Awaitable[Any]] = []

    async def post(self, topic: Topic, partition: int, key: str, event: Event) -> None:
        """Schedules an event. Raises what an earlier one failed with, once too many are in flight."""
        if len(self._sent) >= MAX_IN_FLIGHT:
            await self.settled()
        name = topic.named(self._prefix)
        self._sent.append(await self._app.producer.send(name, key.encode(), encode(event), partition, None, None))

    async def settled(self) -> None:
        """Returns once the broker has acknowledged everything posted so far. Raises where it refused."""
        sent, self._sent = self._sent, []
        if sent:
            await asyncio.gather(*sent)
