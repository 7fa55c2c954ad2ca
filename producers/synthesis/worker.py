"""A synthesis worker: a seed on `rods.seeds` ends in variants and one settlement on `rods.pool`.

    seed -> settled already? -> definition and pool as of its offset -> pipeline, in a thread
         -> stages and rejections to rods.synthesis, variants to rods.pool, all acknowledged
         -> SeedSettled to rods.pool, acknowledged -> commit

One seed at a time, for the shortest way to each variant; more seeds at once are more workers. A worker that dies leaves
its seed uncommitted; whoever redoes it writes the same bytes, of which folds take the first.
"""

import asyncio
import logging
from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer
from pydantic import ValidationError

from eventlog.client import log_producer
from eventlog.connection import Broker
from eventlog.dead_letters import refuse
from eventlog.member import GroupMember
from eventlog.offsets import TakenOffsets
from eventlog.reader import readable
from eventlog.writer import Outgoing, write
from producers.environments.port import TaskSource
from producers.environments.sources import source_named
from producers.errors import PoolBehindError, TaskUnknownError
from producers.process import run_until_signalled
from producers.synthesis.backend import Backend
from producers.synthesis.pipeline import SeedTask, SynthesisOutcome, synthesise
from producers.synthesis.recording import SeedRecording, record, record_error
from producers.synthesis.rules_backend import RulesBackend
from producers.task_log import TaskLog
from producers.work_thread import WorkThread
from schemas.rules import Rules
from schemas.seals import BoundarySeedSelected
from schemas.task import TaskDefinition
from schemas.topics import Topic

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SynthesisWorkerSettings:
    """source: the name of a task source."""

    broker: Broker
    prefix: str
    source: str


def run_synthesis_worker(settings: SynthesisWorkerSettings) -> None:
    """Works until the process is told to end (SIGTERM, SIGINT). Blocks. Raises TaskSourceError, ProducerError,
    LogError, UnknownFingerprintError or KafkaError where it cannot go on."""
    thread = WorkThread("synthesis")
    worker = _Worker(settings, thread, source_named(settings.source), RulesBackend())
    run_until_signalled(worker.run, lambda: thread.busy)


@dataclass(slots=True)
class _Worker:
    settings: SynthesisWorkerSettings
    thread: WorkThread
    source: TaskSource
    backend: Backend
    offsets: TakenOffsets = field(default_factory=TakenOffsets)
    run_id: str = ""

    async def run(self) -> None:
        settings = self.settings
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(TaskLog(settings.broker, settings.prefix).following())
            producer = await stack.enter_async_context(log_producer(settings.broker))
            seeds = Topic.SEEDS.named(settings.prefix)
            member = GroupMember(settings.broker, f"{settings.prefix}synthesis", seeds, self.offsets)
            await stack.enter_async_context(member)
            await self._work(member, producer, tasks)

    async def _work(self, member: GroupMember, producer: AIOKafkaProducer, tasks: TaskLog) -> None:
        while True:
            polled = await member.poll(max_records=1)
            for partition, records in polled.items():
                for record_ in records:
                    if self.offsets.take(partition.partition, record_.offset):
                        await self._take(record_, producer, tasks)
                        self.offsets.done(partition.partition, record_.offset)
            await member.commit()

    async def _take(self, taken: Any, producer: AIOKafkaProducer, tasks: TaskLog) -> None:
        seed = readable(taken)
        if not isinstance(seed, BoundarySeedSelected):
            await refuse(producer, self.settings.prefix, taken, "no boundary seed", self.run_id)
            return
        self.run_id = seed.envelope.run_id
        if await tasks.settled(seed.seed):
            logger.info("seed %s is settled already", seed.seed)
            return
        await self._write(producer, taken.partition, seed, await self._recording(seed, tasks))

    async def _recording(self, seed: BoundarySeedSelected, tasks: TaskLog) -> SeedRecording:
        try:
            rules = Rules.parse(seed.rules)
            index = await tasks.index(seed.pool_offset)
            task, pool = index.definition(seed.task, seed.pool_offset), index.contents(seed.pool_offset)
        except (ValidationError, TaskUnknownError, PoolBehindError) as error:
            logger.error("seed %s cannot be worked on: %s", seed.seed, error)
            return record_error(seed, f"error: {type(error).__name__}")
        try:
            return record(seed, await self.thread.run(lambda: self._synthesise(seed, task, pool, rules)))
        except Exception as error:
            logger.exception("seed %s ended in an error", seed.seed)
            return record_error(seed, f"error: {type(error).__name__}")

    def _synthesise(
        self, seed: BoundarySeedSelected, task: TaskDefinition, pool: Collection[str], rules: Rules
    ) -> SynthesisOutcome:
        seed_task = SeedTask(seed.seed, task, rules.seed)
        return synthesise(seed_task, self.source, pool, rules.synthesis, self.backend)

    async def _write(
        self, producer: AIOKafkaProducer, partition: int, seed: BoundarySeedSelected, recording: SeedRecording
    ) -> None:
        synthesis, pool = Topic.SYNTHESIS.named(self.settings.prefix), Topic.POOL.named(self.settings.prefix)
        task, run = seed.task.encode(), seed.envelope.run_id.encode()
        await asyncio.gather(
            write(producer, [Outgoing(synthesis, partition, task, value) for value in recording.story]),
            write(producer, [Outgoing(pool, 0, run, value) for value in recording.variants]),
        )
        await write(producer, [Outgoing(pool, 0, run, recording.settled)])
