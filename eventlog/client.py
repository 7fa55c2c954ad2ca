"""aiokafka's clients, made in one place with one set of limits.

A producer waits for every in-sync replica. It is not idempotent, since the embedded broker cannot serve that; one batch
in flight per partition keeps the order of writes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from eventlog.connection import Broker, client_options
from schemas.codec import MAX_EVENT_BYTES

MAX_REQUEST_BYTES = MAX_EVENT_BYTES + 64 * 1024
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_MS = 1_000
REBALANCE_TIMEOUT_MS = 10_000
MAX_POLL_INTERVAL_MS = 3_600_000
LIVE_FETCH_MS = 50
"""The embedded broker wakes no waiting fetch, so that this is the delay of a hop."""
OBSERVER_FETCH_MS = 100
BATCH_BYTES = 256 * 1024


def plain_consumer(broker: Broker, fetch_wait_ms: int = OBSERVER_FETCH_MS, **settings: Any) -> AIOKafkaConsumer:
    """A consumer without a group, not yet started, for partitions assigned by hand."""
    return _consumer(broker, auto_offset_reset="none", fetch_max_wait_ms=fetch_wait_ms, **settings)


def group_consumer(broker: Broker, group: str) -> AIOKafkaConsumer:
    """A member of a consumer group that commits explicitly; nothing it does between polls costs it its membership."""
    return _consumer(
        broker,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
        fetch_max_wait_ms=LIVE_FETCH_MS,
    )


def log_producer(broker: Broker, **settings: Any) -> AIOKafkaProducer:
    """A producer, not yet started, that waits for every in-sync replica and takes the largest event."""
    options = {"acks": "all", "linger_ms": 2, "max_batch_size": BATCH_BYTES, "max_request_size": MAX_REQUEST_BYTES}
    return AIOKafkaProducer(**client_options(broker), **(options | settings))


@asynccontextmanager
async def log_admin(broker: Broker) -> AsyncIterator[AIOKafkaAdminClient]:
    """A started admin client. Raises KafkaError where no broker answers."""
    admin = AIOKafkaAdminClient(**client_options(broker))
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


def _consumer(broker: Broker, **settings: Any) -> AIOKafkaConsumer:
    limits = {"max_partition_fetch_bytes": MAX_REQUEST_BYTES, "fetch_max_bytes": 4 * MAX_REQUEST_BYTES}
    return AIOKafkaConsumer(**client_options(broker), enable_auto_commit=False, **(limits | settings))
