"""Many writes to one partition."""

from collections.abc import Iterable

from aiokafka import AIOKafkaProducer

from eventlog.writer import Outgoing, write


async def send_all(
    producer: AIOKafkaProducer, topic: str, partition: int, pairs: Iterable[tuple[str, bytes]]
) -> list[int]:
    """Keys and values in their order; their offsets."""
    return await write(producer, [Outgoing(topic, partition, key.encode(), value) for key, value in pairs])
