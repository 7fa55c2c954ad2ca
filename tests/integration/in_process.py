"""Rollouts, streams and synthesis as coroutines of one process, with the real folds: what a learner meets.

Rewards are a function of group and attempt alone, so that equal decisions give equal runs.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from aiokafka import AIOKafkaProducer

from eventlog.client import log_producer
from eventlog.reader import LogTail, read_all
from eventlog.standstill import Place
from eventlog.writer import send
from schemas.codec import decode, encode
from schemas.envelope import Envelope, Producer, derive
from schemas.identity import content_digest, digest, trajectory_digest, variant_id
from schemas.pool import SeedSettled, Settlement, VariantVerified
from schemas.rollouts import GroupRequested, RolloutFinished, Slot, SlotStatus, TrajectoryRecorded
from schemas.seals import BoundarySeedSelected
from schemas.task import TaskDefinition, Turn
from schemas.topics import Topic
from streams.measure import fold as measure
from streams.measure.state import MeasureState
from streams.pool.fold import evolve as evolve_pool
from streams.pool.state import PoolState
from streams.select import fold as select

TURNS = 2
MASK = b"\x00\x01\x01"


def original(name: str) -> TaskDefinition:
    turns = tuple(Turn((f"do {number}",), (f"f({number})",)) for number in range(TURNS))
    return TaskDefinition(name, "workbench", "base", name, ("Files",), f'{{"name":"{name}"}}', turns)


def originals() -> list[TaskDefinition]:
    return [original(f"{kind}-{number}") for kind in ("easy", "mixed") for number in range(6)]


def turns_passed(request: GroupRequested, attempt: int) -> int:
    """Easy tasks always pass; the others by a hash."""
    return TURNS if request.task.startswith("easy") else int(digest([request.group, attempt]), 16) % (TURNS + 1)


@dataclass(slots=True)
class Services:
    """What the services do. answers: whether a group is run at all. synthesises: whether seeds are settled."""

    address: str
    prefix: str
    partitions: int = 2
    answers: Callable[[GroupRequested], bool] = lambda _: True
    synthesises: bool = True
    trajectories: bool = False
    definitions: dict[str, TaskDefinition] = field(default_factory=lambda: {t.task: t for t in originals()})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs them until the block ends; a failure of one fails the block."""
        async with log_producer(self.address) as producer:
            followers = [
                self._follow(Topic.ASSIGNMENTS, self._rollouts(producer)),
                self._follow(Topic.ROLLOUTS, self._measure(producer)),
                self._follow(Topic.SEALS, self._select(producer)),
                self._follow(Topic.SEEDS, self._synthesis(producer)),
            ]
            tasks = [asyncio.create_task(follower) for follower in followers]
            try:
                yield
                assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, topic: Topic, take: Callable[[int, int, Any], Awaitable[None]]) -> None:
        starts: Mapping[Place, int] = {
            (topic.named(self.prefix), partition): 0 for partition in range(self.partitions if topic.by_task else 1)
        }
        async with LogTail(self.address, starts) as tail:
            while True:
                for record in await tail.poll(0.2):
                    await take(record.partition, record.offset, decode(record.value or b""))

    async def _put(self, producer: AIOKafkaProducer, topic: Topic, partition: int, event: Any) -> None:
        await send(producer, topic.named(self.prefix), partition, "key", encode(event))

    def _rollouts(self, producer: AIOKafkaProducer) -> Callable[[int, int, Any], Awaitable[None]]:
        newest: dict[int, int] = {}

        async def take(partition: int, offset: int, event: Any) -> None:
            newest[partition] = max(newest.get(partition, 0), event.generation)
            if not isinstance(event, GroupRequested) or event.generation < newest[partition]:
                return
            if self.answers(event):
                finished, recorded = _executed(event, str(offset))
                if self.trajectories:
                    for trajectory in recorded:
                        await self._put(producer, Topic.TRAJECTORIES, partition, trajectory)
                await self._put(producer, Topic.ROLLOUTS, partition, finished)

        return take

    def _measure(self, producer: AIOKafkaProducer) -> Callable[[int, int, Any], Awaitable[None]]:
        states = {partition: MeasureState(partition) for partition in range(self.partitions)}

        async def take(partition: int, offset: int, event: Any) -> None:
            evolved = measure.evolve(states[partition], offset, event)
            states[partition] = evolved.state
            assert not evolved.refusals, evolved.refusals
            if evolved.measured is not None:
                await self._put(producer, Topic.MEASUREMENTS, partition, evolved.measured)
            for seal in evolved.seals:
                await self._put(producer, Topic.SEALS, 0, seal)

        return take

    def _select(self, producer: AIOKafkaProducer) -> Callable[[int, int, Any], Awaitable[None]]:
        state = select.SelectState()

        async def take(_: int, offset: int, event: Any) -> None:
            nonlocal state
            selected = select.evolve(state, offset, event)
            state = selected.state
            if selected.proposed is not None:
                await self._put(producer, Topic.SEALS, 0, selected.proposed)
            for seed in selected.seeds:
                await self._put(producer, Topic.SEEDS, seed.partition, seed.event)

        return take

    def _synthesis(self, producer: AIOKafkaProducer) -> Callable[[int, int, Any], Awaitable[None]]:
        async def take(_: int, __: int, event: Any) -> None:
            if self.synthesises:
                for answer in self._variants(event):
                    await self._put(producer, Topic.POOL, 0, derive(answer, event.envelope, Producer.SYNTHESIS))

        return take

    def _variants(self, event: BoundarySeedSelected) -> Iterable[VariantVerified | SeedSettled]:
        parent = self.definitions[event.task]
        made = replace(parent, initial_state=f'{{"seed":"{event.seed}"}}', parent=parent.task)
        content = content_digest(made)
        variant = replace(made, task=variant_id(event.seed, content))
        self.definitions[variant.task] = variant
        yield VariantVerified(event.seed, event.epoch, event.step, event.rank, variant, content)
        yield SeedSettled(0, event.seed, event.epoch, event.step, Settlement.DONE, 1)


def _executed(request: GroupRequested, execution: str) -> tuple[RolloutFinished, list[TrajectoryRecorded]]:
    recorded = [
        TrajectoryRecorded(
            group=request.group,
            execution=execution,
            attempt=attempt,
            epoch=request.epoch,
            step=request.step,
            task=request.task,
            policy_version=request.policy_version,
            token_ids=(1, 2, 3),
            logprobs=(0.0, -0.5, -0.25),
            loss_mask=MASK,
            messages="[]",
        )
        for attempt in range(request.k)
    ]
    finished = RolloutFinished(
        group=request.group,
        execution=execution,
        epoch=request.epoch,
        step=request.step,
        task=request.task,
        purpose=request.purpose,
        category=request.category,
        k=request.k,
        turns_total=request.turns_total,
        slots=tuple(_slot(request, trajectory) for trajectory in recorded),
    )
    cause: Envelope = request.envelope
    return (
        derive(finished, cause, Producer.ROLLOUT),
        [derive(trajectory, cause, Producer.ROLLOUT) for trajectory in recorded],
    )


def _slot(request: GroupRequested, trajectory: TrajectoryRecorded) -> Slot:
    passed = turns_passed(request, trajectory.attempt)
    outcomes = (True,) * passed + (False,) * (passed < TURNS)
    payload = (trajectory.token_ids, trajectory.logprobs, trajectory.loss_mask, trajectory.messages)
    sha256 = trajectory_digest(*payload)
    return Slot(SlotStatus.FINISHED, passed, TURNS, outcomes, 1, 2, 1000, request.policy_version, sha256)


async def events_of(address: str, prefix: str, topic: Topic, partition: int = 0) -> list[Any]:
    """A partition, from its start to its present end."""
    return [decode(record.value or b"") async for record in read_all(address, topic.named(prefix), partition)]


async def pool_states(address: str, prefix: str) -> list[PoolState]:
    """The pool after each event of its log."""
    states = [PoolState()]
    for offset, event in enumerate(await events_of(address, prefix, Topic.POOL)):
        states.append(evolve_pool(states[-1], offset, event))
    return states
