"""A rollout worker: groups asked for on `rods.assignments` come back on `rods.trajectories` and `rods.rollouts`.

    loop      consumes            waits for                               produces
    intake    GroupRequested      room in the backlog                     the backlog
    rounds    the backlog         definition, rules, weights, the thread  deliveries
    deliver   one delivery        acknowledged trajectories               TrajectoryRecorded, then RolloutFinished
    commits   delivered offsets   acknowledged RolloutFinished            the group's offsets

The thread of `GroupRunner` computes; the event loop stays free for heartbeats. Delivery is at least once: a worker that
dies leaves its groups uncommitted, and its successor runs them again under another `execution`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer

from eventlog.client import log_producer
from eventlog.connection import Broker
from eventlog.dead_letters import refuse
from eventlog.member import GroupMember
from eventlog.offsets import TakenOffsets
from eventlog.reader import readable
from eventlog.writer import Outgoing, write
from producers.environments.sources import source_named
from producers.errors import PoolBehindError, TaskUnknownError
from producers.process import run_until_signalled
from producers.rollouts.backlog import Assigned, Backlog
from producers.rollouts.policy_log import PolicyLog
from producers.rollouts.runner import SCRIPTED, Delivery, GroupRunner, GroupTask, Weights, failed, policy_maker
from producers.task_log import TaskLog
from producers.work_thread import WorkThread
from schemas.rollouts import FailureReason
from schemas.rules import RolloutRules
from schemas.topics import Topic

logger = logging.getLogger(__name__)

_GATHER_SECONDS = 0.02
_FULL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class RolloutWorkerSettings:
    """source: the name of a task source. policy: ``scripted`` or a local model folder. threads: of
    the model's arithmetic. max_batch_groups: groups run in one round. attempts_at_once: attempts alive together.
    backlog: groups read ahead. wait_seconds: how long what a request
    names (a policy version, a pool offset) may take to appear."""

    broker: Broker
    prefix: str
    source: str
    policy: str = SCRIPTED
    threads: int = 1
    max_batch_groups: int = 64
    attempts_at_once: int = 256
    backlog: int = 4096
    wait_seconds: float = 30.0


def run_rollout_worker(settings: RolloutWorkerSettings) -> None:
    """Works until the process is told to end (SIGTERM, SIGINT). Blocks. Raises TaskSourceError, PolicyFolderError,
    ProducerError, LogError, UnknownFingerprintError or KafkaError where it cannot go on."""
    source = source_named(settings.source)
    thread = WorkThread("rollouts")
    runner = GroupRunner(source, policy_maker(settings.policy, settings.threads), settings.attempts_at_once)
    run_until_signalled(_Worker(settings, thread, runner).run, lambda: thread.busy)


@dataclass(slots=True)
class _Worker:
    settings: RolloutWorkerSettings
    thread: WorkThread
    runner: GroupRunner
    offsets: TakenOffsets = field(default_factory=TakenOffsets)
    backlog: Backlog = field(init=False)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    run_id: str = ""

    def __post_init__(self) -> None:
        self.backlog = Backlog(self.offsets)

    async def run(self) -> None:
        settings = self.settings
        async with AsyncExitStack() as stack:
            policies = PolicyLog(settings.broker, settings.prefix)
            tasks = TaskLog(settings.broker, settings.prefix, settings.wait_seconds)
            await stack.enter_async_context(policies.following())
            await stack.enter_async_context(tasks.following())
            producer = await stack.enter_async_context(log_producer(settings.broker))
            assignments = Topic.ASSIGNMENTS.named(settings.prefix)
            member = GroupMember(settings.broker, f"{settings.prefix}rollouts", assignments, self.offsets)
            await stack.enter_async_context(member)
            loops = await stack.enter_async_context(asyncio.TaskGroup())
            deliveries = _Deliveries(producer, settings.prefix, self.backlog)
            loops.create_task(self.thread.run(lambda: self.runner.prepare(RolloutRules())))
            loops.create_task(self._intake(member, producer))
            loops.create_task(self._rounds(_Rounds(self, policies, tasks, deliveries), member))
            loops.create_task(member.commit_regularly())

    async def _intake(self, member: GroupMember, producer: AIOKafkaProducer) -> None:
        while True:
            if len(self.backlog) >= self.settings.backlog:
                await asyncio.sleep(_FULL_SECONDS)
                continue
            polled = await member.poll(max_records=512)
            for partition, records in polled.items():
                for record in records:
                    await self._read(partition.partition, record, producer)
            if polled:
                self.arrived.set()

    async def _read(self, partition: int, record: Any, producer: AIOKafkaProducer) -> None:
        event = readable(record)
        if event is None:
            await refuse(producer, self.settings.prefix, record, "undecodable", self.run_id)
        else:
            self.run_id = event.envelope.run_id
        self.backlog.read(partition, record.offset, event)

    async def _rounds(self, rounds: "_Rounds", member: GroupMember) -> None:
        while True:
            batch = self.backlog.batch(self.settings.max_batch_groups)
            if batch:
                await rounds.run(batch)
                await member.commit()
                continue
            await self.arrived.wait()
            self.arrived.clear()
            await asyncio.sleep(_GATHER_SECONDS)


@dataclass(frozen=True, slots=True)
class _Rounds:
    """One round: the groups of a batch, by policy version and epoch in the order they were asked for."""

    worker: _Worker
    policies: PolicyLog
    tasks: TaskLog
    deliveries: "_Deliveries"

    async def run(self, batch: Sequence[Assigned]) -> None:
        runs: dict[tuple[int, int], list[Assigned]] = {}
        for assigned in batch:
            runs.setdefault((assigned.request.policy_version, assigned.request.epoch), []).append(assigned)
        async with asyncio.TaskGroup() as writes:
            for (version, epoch), groups in runs.items():
                async for delivery in self._run(version, epoch, groups):
                    writes.create_task(self.deliveries.write(delivery))

    async def _run(self, version: int, epoch: int, groups: Sequence[Assigned]) -> AsyncIterator[Delivery]:
        known: list[GroupTask] = []
        for assigned in groups:
            task = await self._define(assigned)
            if task is None:
                yield failed(assigned, FailureReason.ENVIRONMENT)
            else:
                known.append(task)
        wait = self.worker.settings.wait_seconds
        rules = await self.policies.rules(epoch, wait)
        weights = await self._weights(version)
        if weights is None:
            logger.error("policy version %d is not published; %d groups fail", version, len(known))
            for task in known:
                yield failed(task.assigned, FailureReason.POLICY)
        elif known:
            async for delivery in self.worker.thread.stream(lambda: self.worker.runner.run(known, rules, weights)):
                yield delivery

    async def _define(self, assigned: Assigned) -> GroupTask | None:
        request = assigned.request
        try:
            index = await self.tasks.index(request.pool_offset)
            definition = index.definition(request.task, request.pool_offset)
        except (TaskUnknownError, PoolBehindError) as error:
            logger.error("group %s fails: %s", request.group, error)
            return None
        if definition.turns_total != request.turns_total:
            logger.error("group %s fails: it asks for %d turns of another total", request.group, request.turns_total)
            return None
        return GroupTask(assigned, definition)

    async def _weights(self, version: int) -> Weights | None:
        settings = self.worker.settings
        if settings.policy == SCRIPTED:
            return Weights(version)
        published = await self.policies.published(version, settings.wait_seconds)
        return Weights(version, published.location, published.sha256) if published else None


@dataclass(frozen=True, slots=True)
class _Deliveries:
    """Writes a group's result: its trajectories are acknowledged before its RolloutFinished is sent."""

    producer: AIOKafkaProducer
    prefix: str
    backlog: Backlog

    async def write(self, delivery: Delivery) -> None:
        trajectories = [self._out(Topic.TRAJECTORIES, delivery, data) for data in delivery.recording.trajectories]
        await write(self.producer, trajectories)
        await write(self.producer, [self._out(Topic.ROLLOUTS, delivery, delivery.recording.finished)])
        self.backlog.done(delivery.assigned)

    def _out(self, topic: Topic, delivery: Delivery, value: bytes) -> Outgoing:
        assigned = delivery.assigned
        return Outgoing(topic.named(self.prefix), assigned.partition, assigned.request.task.encode(), value)
