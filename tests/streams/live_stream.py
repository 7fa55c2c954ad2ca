"""A Faust app, stream and messages as the agents see them, without a broker."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from schemas.codec import decode, encode
from schemas.topics import Topic
from streams.service.outbox import Outbox
from streams.service.session import Gate, Session


class Producer:
    """Acknowledges at once, unless `hold` is set: then when `release` is called."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int, bytes]] = []
        self.hold = False
        self.held: list[asyncio.Future[None]] = []
        self.failure: Exception | None = None

    async def send_many(
        self, topic: str, partition: int, pairs: "list[tuple[bytes, bytes]]"
    ) -> "list[asyncio.Future[None]]":
        return [self._send(topic, partition, value) for _, value in pairs]

    def _send(self, topic: str, partition: int, value: bytes) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sent.append((topic, partition, value))
        if self.failure:
            future.set_exception(self.failure)
        elif self.hold:
            self.held.append(future)
        else:
            future.set_result(None)
        return future

    def release(self) -> None:
        for future in self.held:
            future.set_result(None)
        self.held.clear()

    def events(self, topic: Topic) -> list[Any]:
        return [decode(value) for name, _, value in self.sent if name == topic.named("rods.")]


@dataclass
class App:
    consumer_generation_id: int = 1
    producer: Producer = field(default_factory=Producer)


@dataclass
class Message:
    topic: str
    partition: int
    offset: int
    value: bytes | None
    generation_id: int = 1
    timestamp: float = 1_700_000_000.123


@dataclass
class Delivery:
    message: Message


@dataclass
class Stream:
    acked: list[int] = field(default_factory=list)

    async def ack(self, event: Delivery) -> None:
        self.acknowledge([event])

    def acknowledge(self, events: Iterable[Delivery]) -> None:
        self.acked += [event.message.offset for event in events]


class Live:
    """One worker's parts around an agent."""

    def __init__(self, session: Session) -> None:
        self.app = App()
        self.gate = Gate(self.app)
        self.outbox = Outbox(self.app, "rods.")
        self.stream = Stream()
        self.session = session
        self.gate.open(session)

    @property
    def producer(self) -> Producer:
        return self.app.producer


async def until(condition: Callable[[], bool]) -> None:
    """Lets other tasks go on until a condition holds, however slow the machine is."""
    while not condition():
        await asyncio.sleep(0.001)


def delivery(topic: Topic, offset: int, event: Any, *, partition: int = 0, generation: int = 1) -> Delivery:
    value = event if isinstance(event, bytes) else encode(event)
    return Delivery(Message(topic.named("rods."), partition, offset, value, generation))
