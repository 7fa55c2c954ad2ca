"""``rods topics``: the plan for a cluster, made from what it has, and the list of what it has."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from eventlog.client import plain_consumer
from eventlog.connection import Connection
from eventlog.reader import end_offsets
from rods.brokers.connection import connection_of, tried
from rods.brokers.topic_admin import TopicAdmin, run_under
from rods.brokers.topics_file import TOPICS_FILE, TopicSpec, load_topics
from rods.brokers.topics_plan import FoundTopic, TopicChange, plan
from rods.errors import UserError
from rods.settings import Settings
from schemas.topics import Topic

_SHOWN_SECONDS = 15.0


async def planned(settings: Settings, file: Path | None, *, apply: bool) -> tuple[TopicChange, ...]:
    """The plan for the settings' prefix and N, carried out if asked. Raises UserError."""
    connection = connection_of(settings)
    await tried(connection)
    specs = load_topics(settings.prefix, settings.partitions, file or TOPICS_FILE)
    try:
        async with TopicAdmin(connection) as admin:
            brokers = await admin.brokers()
            found = await _found(admin, specs)
            has_log = Topic.EPOCHS.named(settings.prefix) in found
            run = await run_under(connection, settings.prefix) if has_log else None
            wanted = [spec.on(brokers) for spec in specs]
            changes = plan(wanted, found, run)
            if apply:
                await admin.apply(changes)
                await _shown(admin, wanted)
    except KafkaError as error:
        raise UserError(f"the broker at {connection} refuses: {error}") from error
    return changes


async def _shown(admin: TopicAdmin, specs: Sequence[TopicSpec]) -> None:
    """Waits until the broker shows the changes: its nodes hear of a change one after the other."""
    end = asyncio.get_running_loop().time() + _SHOWN_SECONDS
    while left := [change for change in plan(specs, await _found(admin, specs), None) if change.changes_something]:
        if asyncio.get_running_loop().time() > end:
            raise UserError(f"the broker took the changes and does not show them at {left[0].spec.name}; look again")
        await asyncio.sleep(0.1)


async def _found(admin: TopicAdmin, specs: Sequence[TopicSpec]) -> dict[str, FoundTopic]:
    return await admin.found([spec.name for spec in specs])


async def listed(settings: Settings) -> list[dict[str, Any]]:
    """A row a topic of the prefix that exists, in the order of the catalogue. Raises UserError."""
    connection = connection_of(settings)
    await tried(connection)
    names = [topic.named(settings.prefix) for topic in Topic]
    async with TopicAdmin(connection) as admin:
        found = await admin.found(names)
    rows = []
    for topic in (found[name] for name in names if name in found):
        config = topic.config or {}
        rows.append(
            {
                "topic": topic.name,
                "partitions": topic.partitions,
                "replication": topic.replication,
                "records": await _records(connection, topic.name, topic.partitions),
                "retention_ms": int(config["retention.ms"]) if "retention.ms" in config else None,
                "max_message_bytes": int(config["max.message.bytes"]) if "max.message.bytes" in config else None,
            }
        )
    return rows


async def _records(connection: Connection, name: str, partitions: int) -> int:
    """How many offsets the topic holds now."""
    places = [(name, number) for number in range(partitions)]
    ends = await end_offsets(connection, places)
    async with plain_consumer(connection) as consumer:
        begins = await consumer.beginning_offsets([TopicPartition(*place) for place in places])
    return sum(ends.values()) - sum(int(begin) for begin in begins.values())
