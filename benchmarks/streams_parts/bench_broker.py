"""A broker of the benchmark's own with preloaded topics."""

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaProducer

from benchmarks.streams_parts.load import Load, steps
from eventlog.client import log_producer
from rods.brokers.embedded import create_topics
from schemas.codec import encode
from schemas.topics import Topic

BATCH_BYTES = 512 * 1024


async def preload(broker: str, prefixes: Iterable[str], load: Load) -> list[int]:
    """Makes each prefix's topics and writes the same messages to each; the end offset of every partition."""
    names = list(prefixes)
    for prefix in names:
        await create_topics(broker, prefix, load.partitions)
    ends = [0] * load.partitions
    async with log_producer(broker, max_batch_size=BATCH_BYTES) as producer:
        for events in steps(load):
            encoded: list[list[tuple[bytes, bytes]]] = [[] for _ in range(load.partitions)]
            for partition, key, event in events:
                encoded[partition].append((key.encode(), encode(event)))
            for partition, messages in enumerate(encoded):
                ends[partition] += len(messages)
                await asyncio.gather(
                    *[_write(producer, Topic.ROLLOUTS.named(prefix), partition, messages) for prefix in names]
                )
    return ends


async def _write(producer: AIOKafkaProducer, topic: str, partition: int, messages: list[tuple[bytes, bytes]]) -> None:
    """Writes messages in batches made here: several times as fast as one send a message."""
    batch = producer.create_batch()
    for key, value in messages:
        if batch.append(key=key, value=value, timestamp=None) is None:
            await (await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(key=key, value=value, timestamp=None)
    await (await producer.send_batch(batch, topic, partition=partition))
