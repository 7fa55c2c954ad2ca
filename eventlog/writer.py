"""Writes to explicit partitions, each acknowledged by every in-sync replica before a call returns."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from aiokafka import AIOKafkaProducer


class Outgoing(NamedTuple):
    """An encoded event on its way to a partition. topic: its full name."""

    topic: str
    partition: int
    key: bytes
    value: bytes


async def write(producer: AIOKafkaProducer, events: Iterable[Outgoing]) -> list[int]:
    """Writes events in their order; their offsets once all are acknowledged. Raises what the broker refuses with."""
    sent = [await producer.send(topic, value, key=key, partition=number) for topic, number, key, value in events]
    return [int(metadata.offset) for metadata in await asyncio.gather(*sent)]


async def send(producer: AIOKafkaProducer, topic: str, partition: int, key: str, value: bytes) -> int:
    """Writes one event; its offset."""
    return (await write(producer, [Outgoing(topic, partition, key.encode(), value)]))[0]
