"""The process entry of the streams service."""

import asyncio
import gc
import logging

import faust
from aiokafka.errors import KafkaError

from eventlog.client import log_admin
from schemas.topics import Topic
from streams.errors import StreamError
from streams.service.app import build_app
from streams.service.settings import StreamsSettings

__all__ = ["StreamsSettings", "run_streams"]

COLLECT_EVERY = 50_000
_NEEDED = (Topic.ROLLOUTS, Topic.MEASUREMENTS, Topic.SEALS, Topic.SEEDS, Topic.DEAD_LETTERS)


def run_streams(settings: StreamsSettings) -> None:
    """Measures and selects until SIGTERM or SIGINT. Blocks; ends by SystemExit.

    Raises StreamError where the run's topics do not exist or have another number of partitions: they are made before a
    run, since a worker that made them would choose their retention and replication.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    spare_collections()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(wait_for_topics(settings))
    worker = faust.Worker(
        build_app(settings),
        loop=loop,
        quiet=True,
        loglevel=logging.getLevelName(logging.getLogger("faust").getEffectiveLevel()),
        override_logging=False,
        redirect_stdouts=False,
    )
    worker.spinner = None
    logging.getLogger("faust.app.base").setLevel(logging.ERROR)
    worker.execute_from_commandline()


def spare_collections() -> None:
    """Looks for garbage in cycles less often: a group is some hundred objects that make none, and by default the
    looking took a fifth of the time."""
    gc.set_threshold(COLLECT_EVERY, 20, 50)


async def wait_for_topics(settings: StreamsSettings) -> None:
    """Returns once the run's topics exist with the right number of partitions; a broker that is down may come back.

    Raises StreamError where they do not in time, KafkaError where the broker does not.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + settings.topics_seconds
    wrong = await _wrong_or_down(settings)
    while wrong and clock() < end:
        await asyncio.sleep(0.2)
        wrong = await _wrong_or_down(settings)
    if wrong:
        wrong = await _wrong_topics(settings)
    if wrong:
        raise StreamError(f"the topics of a run of {settings.partitions} partitions are not there: {', '.join(wrong)}")


async def _wrong_or_down(settings: StreamsSettings) -> list[str]:
    try:
        return await _wrong_topics(settings)
    except KafkaError as error:
        return [str(error)]


async def _wrong_topics(settings: StreamsSettings) -> list[str]:
    """The needed topics that are absent or have another number of partitions than theirs."""
    names = {topic.named(settings.prefix): settings.partitions if topic.by_task else 1 for topic in _NEEDED}
    async with log_admin(settings.broker) as admin:
        existing = [name for name in names if name in set(await admin.list_topics())]
        described = await admin.describe_topics(existing) if existing else []
    found = {topic["topic"]: len(topic["partitions"]) for topic in described}
    return [name for name, partitions in names.items() if found.get(name) != partitions]
