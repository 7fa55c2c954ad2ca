"""The learner's loop, from the log and back to it.

    StepOpened -> GroupRequested -> ... TaskMeasured (a hint) -> BarrierReached -> N x PartitionSealed
        -> batch (seals + trajectories) -> train -> PolicyPublished -> StepClosed
    after an epoch's last step: SelectionClosed -> SeedSettled of every seed -> BoundaryOpened
        -> decisions -> PoolMaterialized -> evaluation -> EpochClosed

| phase    | consumes                    | waits for                    | produces                              |
|----------|-----------------------------|------------------------------|---------------------------------------|
| step     | measurements, seals         | every group, or the deadline | StepOpened, GroupRequested, Barrier   |
| train    | seals, trajectories         | N seals of the step          | PolicyPublished, StepClosed           |
| boundary | seals, pool                 | settled seeds, or expiry     | BoundaryOpened, decisions, Materialized |
| evaluate | measurements                | every group, or the deadline | GroupRequested, PolicyEvaluated       |

Each phase asks the log first: what is there already is taken from it, so that a new generation goes on where the last
one stopped. Decisions depend on seals and pool alone.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from learner.engine import StepMetrics
from learner.errors import LearnerError, SupersededError
from learner.generation import claim_generation
from learner.history import History
from learner.in_flight import InFlight
from learner.log import LearnerLog, Write
from learner.plan import StepPlan, held_out_groups, plan_epoch
from learner.samples import StepBatch, step_batch
from learner.trainer import Trainer
from learner.views import Views
from schemas.epochs import (
    AlarmRaised,
    EpochClosed,
    EpochOpened,
    EvaluatedTask,
    PlannedGroup,
    PolicyEvaluated,
    PolicyPublished,
    StepClosed,
    StepOpened,
)
from schemas.pool import BoundaryOpened, PoolMaterialized, SeedSettled, Settlement, TaskRegistered, TaskSet
from schemas.rollouts import BarrierReached, ExpectedGroup, GroupRequested
from schemas.rules import Rules
from schemas.task import TaskDefinition
from schemas.topics import Topic, partition_of
from streams.pool.decide import BoundaryDecision, decide_boundary, probes_of
from streams.pool.evidence import SealLog
from streams.pool.materialise import write_pool
from streams.pool.state import PoolState

logger = logging.getLogger(__name__)

SEAL_SECONDS = 300.0
EVALUATION_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Provenance:
    """What EpochOpened records beside the rules."""

    code_revision: str
    packages: dict[str, str]
    source_digest: str
    model_digest: str
    tokenizer_digest: str


class Learner:
    """One run's learner. `originals` and `heldout` are registered once, by the first generation."""

    def __init__(
        self,
        log: LearnerLog,
        rules: Rules,
        trainer: Trainer,
        provenance: Provenance,
        originals: Sequence[TaskDefinition],
        heldout: Sequence[TaskDefinition],
        pools: Path,
        nonce: str,
    ) -> None:
        self.log, self.rules, self.trainer, self.provenance = log, rules, trainer, provenance
        self.originals, self.heldout, self.pools, self.nonce = originals, heldout, pools, nonce
        self.views = Views()
        self.in_flight = InFlight.under(rules)
        self.generation = 0
        self.idle: dict[str, float] = {}

    @property
    def history(self) -> History:
        return self.views.history

    @property
    def pool(self) -> PoolState:
        return self.views.pool

    @property
    def seals(self) -> SealLog:
        return self.views.seals

    async def run(self) -> None:
        """Trains all epochs. Raises SupersededError once another learner owns the run."""
        await self.log.start(self.views.folds(self.trainer.needs_trajectories))
        try:
            self._refuse_another_run()
            self.generation = await claim_generation(self.log, self.history, self.nonce)
            self.log.guard = self._still_mine
            await self._register()
            await self._restore()
            await self._publish_first()
            await self._evaluate(0)
            for epoch in range(1, self.rules.epochs + 1):
                if epoch not in self.history.epochs_closed:
                    await self._epoch(epoch)
        finally:
            await self.log.stop()

    def _refuse_another_run(self) -> None:
        if self.history.run_id and self.history.run_id != self.log.run_id:
            raise LearnerError(
                f"the topics under the prefix {self.log.prefix} hold the run {self.history.run_id}; take another prefix"
            )

    def _still_mine(self) -> None:
        if self.history.generation > self.generation:
            raise SupersededError(self.generation)

    async def _register(self) -> None:
        """The originals, the held-out tasks, and the pool of epoch 0."""
        sets = [(task, TaskSet.POOL) for task in self.originals] + [(task, TaskSet.HELDOUT) for task in self.heldout]
        new = [
            TaskRegistered(self.generation, task, task_set)
            for task, task_set in sets
            if task.task not in self.pool.definitions
        ]
        if self.pool.epoch < 0:
            await self._to_pool(new)
            await self._boundary(0, last_step=0, digest="")

    async def _restore(self) -> None:
        """Weights and optimiser as they were after the last closed step."""
        closed = max(self.history.steps_closed, default=0)
        if closed and await self.trainer.restore(closed) != closed:
            raise LearnerError(f"there is no checkpoint of step {closed}, the last one the log says is closed")

    async def _publish_first(self) -> None:
        if self.history.newest_policy < 0:
            await self._publish(0)

    async def _publish(self, version: int) -> None:
        published = await self.trainer.publish(version, self.generation)
        event = PolicyPublished(self.generation, version, published.location, published.sha256)
        await self._to_epochs(event)

    # Epochs

    async def _epoch(self, epoch: int) -> None:
        await self._open_epoch(epoch)
        if self.pool.epoch < epoch:
            await self._train_on_pool(epoch)
        if not self.trainer.by_step and self.history.newest_policy < epoch:
            await self._publish(epoch)
        if epoch % self.rules.learner.evaluate_every == 0 or epoch == self.rules.epochs:
            await self._evaluate(epoch)
        await self._to_epochs(EpochClosed(self.generation, epoch, self.pool.version, self.pool.digest))
        self.seals.forget_before(epoch)

    async def _train_on_pool(self, epoch: int) -> None:
        """The epoch's steps, and the boundary after them."""
        pool = self.pool.cut or self.pool
        if pool.epoch != epoch - 1:
            raise LearnerError(f"epoch {epoch} cannot be planned from the pool of epoch {pool.epoch}")
        first, probes = self.history.first_step_of(epoch), probes_of(pool, self.rules)
        plans = plan_epoch(self.rules, epoch, first, list(pool.members), probes)
        for plan in plans:
            if plan.step not in self.history.steps_closed:
                await self._step(plan)
        last_step = plans[-1].step
        await self._settle_seeds(epoch, last_step)
        await self._boundary(epoch, last_step, self.seals.selections[last_step].digest)

    async def _open_epoch(self, epoch: int) -> None:
        if epoch not in self.history.epochs_opened:
            fields = self.provenance
            await self._to_epochs(
                EpochOpened(
                    generation=self.generation,
                    epoch=epoch,
                    rules=self.rules.canonical(),
                    partitions=self.log.partitions,
                    code_revision=fields.code_revision,
                    packages=fields.packages,
                    source_digest=fields.source_digest,
                    model_digest=fields.model_digest,
                    tokenizer_digest=fields.tokenizer_digest,
                )
            )

    # Steps

    async def _step(self, plan: StepPlan) -> None:
        opened = await self._open_step(plan)
        self.views.trajectories.open(opened.step)
        self.in_flight.open(opened.step, len(opened.groups))
        await self._request(opened.groups, opened.epoch, opened.step, opened.k, opened.policy_version)
        await self._measured(opened.groups, self.rules.rollout.deadline_seconds)
        await self._seal(opened)
        self.in_flight.sealed(opened.step)
        batch = step_batch(
            self.seals.steps[opened.step].groups(),
            self.views.trajectories.held,
            opened.policy_version,
            self.in_flight,
        )
        started = self.log.clock()
        metrics = await self.trainer.train(batch)
        seconds = (self.log.clock() - started) / 1e6
        if self.trainer.by_step:
            await self._save(opened)
            await self._publish(opened.policy_version + 1)
        await self._close_step(opened, batch, metrics, seconds)

    async def _save(self, opened: StepOpened) -> None:
        progress = {"epoch": opened.epoch, "step": opened.step, "last": opened.last_of_epoch, "run": self.log.run_id}
        await self.trainer.save(opened.step, self.generation, progress)

    async def _open_step(self, plan: StepPlan) -> StepOpened:
        if plan.step not in self.history.steps_opened:
            await self._to_epochs(
                StepOpened(
                    generation=self.generation,
                    epoch=plan.epoch,
                    step=plan.step,
                    groups=plan.groups,
                    k=self.rules.rollout.k,
                    policy_version=self.history.newest_policy,
                    last_of_epoch=plan.last_of_epoch,
                )
            )
        return self.history.steps_opened[plan.step]

    async def _request(
        self, groups: Sequence[PlannedGroup], epoch: int, step: int, k: int, policy_version: int
    ) -> None:
        """Asks for the groups that the log lacks. A new generation asks again: the old requests are fenced off."""
        deadline = self.log.clock() + int(self.rules.rollout.deadline_seconds * 1e6)
        requests = [
            self._request_of(group, epoch, step, k, policy_version, deadline)
            for group in groups
            if group.group not in self.views.measured
        ]
        await self.log.write(
            [Write(Topic.ASSIGNMENTS, self._partition(request.task), request.task, request) for request in requests]
        )

    def _request_of(
        self, group: PlannedGroup, epoch: int, step: int, k: int, policy_version: int, deadline: int
    ) -> GroupRequested:
        definition = self.pool.definitions[group.task]
        return GroupRequested(
            generation=self.generation,
            epoch=epoch,
            step=step,
            task=group.task,
            group=group.group,
            purpose=group.purpose,
            k=k,
            turns_total=definition.turns_total,
            category=definition.category,
            policy_version=policy_version,
            temperature=self.rules.rollout.temperature,
            seed=self.rules.seed,
            deadline=deadline,
            pool_offset=self.pool.materialized_offset,
        )

    async def _measured(self, groups: Sequence[PlannedGroup], seconds: float) -> None:
        """Waits for a measurement of every group. Past the deadline the barrier decides what is missing."""
        wanted = {group.group for group in groups}
        measured = self.views.measured
        if not await self._wait("rollouts", lambda: wanted <= measured.keys(), seconds):
            logger.warning("%d of %d groups were not measured in time", len(wanted - measured.keys()), len(wanted))

    async def _seal(self, opened: StepOpened) -> None:
        """Barriers on every partition, then the seals that answer them."""
        if not self.seals.complete(opened.step):
            await self.log.write(
                Write(Topic.ROLLOUTS, partition, self.log.run_id, self._barrier(opened, partition))
                for partition in range(self.log.partitions)
            )
        if not await self._wait("seals", lambda: self.seals.complete(opened.step), SEAL_SECONDS):
            raise LearnerError(f"step {opened.step} was not sealed in {SEAL_SECONDS:.0f} s; are the streams running?")
        for group in opened.groups:
            self.views.measured.pop(group.group, None)

    def _barrier(self, opened: StepOpened, partition: int) -> BarrierReached:
        expected = [group for group in opened.groups if self._partition(group.task) == partition]
        return BarrierReached(
            generation=self.generation,
            epoch=opened.epoch,
            step=opened.step,
            partition=partition,
            partitions=self.log.partitions,
            expected=tuple(self._expected(group, opened.k) for group in expected),
            rules=self.history.epochs_opened[opened.epoch].rules,
            last_of_epoch=opened.last_of_epoch,
            pool_offset=self.pool.materialized_offset,
        )

    def _expected(self, group: PlannedGroup, k: int) -> ExpectedGroup:
        definition = self.pool.definitions[group.task]
        return ExpectedGroup(group.group, group.task, group.purpose, k, definition.turns_total, definition.category)

    async def _close_step(
        self, opened: StepOpened, batch: StepBatch, metrics: StepMetrics | None, seconds: float
    ) -> None:
        await self._to_epochs(
            StepClosed(
                generation=self.generation,
                epoch=opened.epoch,
                step=opened.step,
                policy_version=opened.policy_version,
                measured=batch.measured,
                missing=batch.missing,
                flat=batch.flat,
                trained=batch.trained,
                stale=batch.stale,
                unmatched=batch.unmatched,
                progress=batch.progress,
                loss=metrics.loss if metrics else None,
                kl=metrics.kl if metrics else None,
                entropy=metrics.entropy if metrics else None,
                clip_share=metrics.clip_share if metrics else None,
                gradient_norm=metrics.gradient_norm if metrics else None,
                response_length=metrics.response_length if metrics else None,
                tokens_per_second=metrics.tokens / seconds if metrics and seconds > 0 else None,
                idle_seconds=dict(self.idle),
            )
        )
        self.idle.clear()

    # Boundaries

    async def _settle_seeds(self, epoch: int, last_step: int) -> None:
        """Waits for the last selection, then for every seed the boundary includes; what is late expires."""
        selections = self.seals.selections
        if not await self._wait("selection", lambda: last_step in selections, SEAL_SECONDS):
            raise LearnerError(f"step {last_step} was not selected in {SEAL_SECONDS:.0f} s; are the streams running?")
        seeds = self.seals.seeds(last_step - self.rules.synthesis.lag_steps)
        seconds = self.rules.synthesis.settle_seconds
        await self._wait("synthesis", lambda: all(seed.seed in self.pool.settled for seed in seeds), seconds)
        expired = [seed for seed in seeds if seed.seed not in self.pool.settled]
        steps = {seed.seed: step for step, closed in selections.items() for seed in closed.seeds}
        await self._to_pool(
            SeedSettled(self.generation, seed.seed, epoch, steps[seed.seed], Settlement.EXPIRED, 0) for seed in expired
        )

    async def _boundary(self, epoch: int, last_step: int, digest: str) -> None:
        """Fixes the cut, decides, writes, and waits until the pool has taken it in."""
        if self.pool.boundary is None or self.pool.boundary.epoch != epoch:
            last_seed_step = max(0, last_step - self.rules.synthesis.lag_steps)
            opened = BoundaryOpened(self.generation, epoch, last_step, last_seed_step, digest, self.rules.canonical())
            await self._to_pool([opened])
        boundary, cut = self.pool.boundary, self.pool.cut
        if boundary is None or cut is None:
            raise LearnerError(f"the boundary of epoch {epoch} is open in the log and not in the pool")
        evidence = self.seals.evidence(epoch, boundary.last_step)
        decision = decide_boundary(cut, boundary, evidence, self.generation)
        await self._alarm(epoch, last_step, decision)
        await self._to_pool(decision.events()[:-1])
        await self._to_pool([self._with_offsets(decision.materialized)])
        self.pools.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(write_pool, self.pools, decision.materialized, self.pool)

    def _with_offsets(self, materialized: PoolMaterialized) -> PoolMaterialized:
        offsets = {"pool/0": self.pool.next_offset, "seals/0": self.seals.next_offset}
        return replace(materialized, offsets=offsets)

    async def _alarm(self, epoch: int, step: int, decision: BoundaryDecision) -> None:
        """Starvation: nothing to inject. It is raised and never stops training."""
        if epoch > 0 and self.rules.curriculum != "static" and not decision.injected:
            detail = f"nothing was injected after epoch {epoch}; {len(decision.materialized.queue)} variants wait"
            await self._to_epochs(AlarmRaised(self.generation, "starvation", epoch, step, detail))

    # Evaluation

    async def _evaluate(self, epoch: int) -> None:
        """The held-out tasks, as the newest policy does them. Enters no barrier and decides nothing."""
        version, step = self.history.newest_policy, max(self.history.steps_opened, default=0)
        groups = held_out_groups(self.rules, epoch, step, list(self.pool.heldout))
        temperature = self.rules.rollout.temperature
        if not groups or (str(version), TaskSet.HELDOUT.value, str(temperature)) in self.history.evaluated:
            return
        await self._request(groups, epoch, step, self.rules.learner.evaluate_k, version)
        await self._measured(groups, EVALUATION_SECONDS)
        found = [self.views.measured.pop(group.group) for group in groups if group.group in self.views.measured]
        results = tuple(EvaluatedTask(m.task, m.live, m.turns_passed, m.turns_total) for m in found)
        await self._to_epochs(PolicyEvaluated(self.generation, version, TaskSet.HELDOUT, temperature, epoch, results))

    # The log

    def _partition(self, task: str) -> int:
        return partition_of(task, self.log.partitions)

    async def _wait(self, cause: str, condition: Callable[[], bool], seconds: float | None) -> bool:
        started = self.log.clock()
        reached = await self.log.wait_until(condition, seconds)
        self.idle[cause] = self.idle.get(cause, 0.0) + (self.log.clock() - started) / 1e6
        return reached

    async def _to_epochs(self, event: Any) -> None:
        """Writes to `rods.epochs` and waits until the history has it."""
        offset = (await self.log.write([Write(Topic.EPOCHS, 0, self.log.run_id, event)]))[0]
        await self.log.wait_until(lambda: self.history.next_offset > offset)

    async def _to_pool(self, events: Iterable[Any]) -> None:
        """Writes to `rods.pool` and waits until the pool has folded it."""
        offsets = await self.log.write([Write(Topic.POOL, 0, self.log.run_id, event) for event in events])
        if offsets:
            await self.log.wait_until(lambda: self.pool.next_offset > offsets[-1])
