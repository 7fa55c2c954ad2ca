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

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from learner.asking import Asking
from learner.boundary import close_boundary, close_epoch, last_seed_step, write_current_pool
from learner.cuts import Cuts
from learner.engine import StepMetrics
from learner.errors import LearnerError, SupersededError
from learner.generation import claim_generation
from learner.history import History
from learner.in_flight import InFlight
from learner.journal import Journal
from learner.log import LearnerLog, Write
from learner.plan import StepPlan, held_out_groups, plan_epoch
from learner.samples import StepBatch, awaited, step_batch
from learner.trainer import Trainer
from learner.views import Views
from schemas.epochs import (
    EpochClosed,
    EpochOpened,
    EvaluatedTask,
    PlannedGroup,
    PolicyEvaluated,
    PolicyPublished,
    StepClosed,
    StepOpened,
)
from schemas.pool import TaskRegistered, TaskSet
from schemas.rules import Rules
from schemas.task import TaskDefinition
from schemas.topics import Topic
from streams.pool.decide import probes_of
from streams.pool.evidence import SealedSteps
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
    """One run's learner. `originals` and `heldout` are registered once, by the first generation. `rules` decide the
    epochs that it opens; an epoch that is open already keeps the rules it was opened with. `cuts`: where the archive
    is the log of record."""

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
        cuts: Cuts | None = None,
    ) -> None:
        self.log, self.trainer, self.provenance, self.cuts = log, trainer, provenance, cuts
        self.originals, self.heldout, self.pools, self.nonce = originals, heldout, pools, nonce
        self.configured = self.rules = rules
        self.views = Views()
        self.journal = Journal(log, self.views)
        self.in_flight = InFlight.under(rules)

    @property
    def history(self) -> History:
        return self.views.history

    @property
    def pool(self) -> PoolState:
        return self.views.pool

    @property
    def seals(self) -> SealedSteps:
        return self.views.seals

    @property
    def generation(self) -> int:
        return self.journal.generation

    @property
    def asking(self) -> Asking:
        return Asking(self.generation, self.rules, self.pool, self.log.partitions)

    async def run(self) -> None:
        """Trains all epochs. Raises SupersededError once another learner owns the run, LearnerError, LogError."""
        try:
            await self.log.start(self.views.folds())
            self._refuse_another_run()
            await self._claim()
            await self._register()
            await self._restore()
            await self._follow_trajectories()
            await self._publish_first()
            await self._open_epoch(1)
            if not self.history.steps_opened:
                await self._cut()
                await self._evaluate(0)
            for epoch in range(1, self.configured.epochs + 1):
                if epoch not in self.history.epochs_closed:
                    await self._epoch(epoch)
            if self.cuts is not None:
                await self.cuts.finish()
        finally:
            if self.cuts is not None:
                await self.cuts.stop()
            await self.log.stop()

    def _refuse_another_run(self) -> None:
        if self.history.run_id and self.history.run_id != self.log.run_id:
            raise LearnerError(
                f"the topics under the prefix {self.log.prefix} hold the run {self.history.run_id}; take another prefix"
            )
        for opened in self.history.epochs_opened.values():
            if opened.partitions != self.log.partitions:
                raise LearnerError(
                    f"this run has {opened.partitions} partitions, which never changes; "
                    f"start the learner with that number instead of {self.log.partitions}"
                )

    async def _claim(self) -> None:
        """The generation, and a pool that has folded all that older generations wrote to it."""
        self.journal.generation = await claim_generation(self.log, self.history, self.nonce)
        self.log.guard = self._still_mine
        await self.log.wait_until(lambda: self.pool.generation >= self.generation)

    def _still_mine(self) -> None:
        if max(self.history.generation, self.pool.generation) > self.generation:
            raise SupersededError(self.generation)

    async def _register(self) -> None:
        """The originals, the held-out tasks, and the pool of epoch 0."""
        if self.pool.epoch < 0:
            sets = [(task, TaskSet.POOL) for task in self.originals] + [
                (task, TaskSet.HELDOUT) for task in self.heldout
            ]
            await self.journal.to_pool(
                TaskRegistered(self.generation, task, task_set)
                for task, task_set in sets
                if task.task not in self.pool.definitions
            )
            await close_boundary(self.journal, self.rules, epoch=0, last_step=0, selection_digest="")
        await write_current_pool(self.journal, self.pools)

    async def _restore(self) -> None:
        """Weights and optimiser as they were after the last closed step."""
        closed = self.history.last_closed_step
        if closed and await self.trainer.restore(closed) != closed:
            raise LearnerError(
                f"there is no checkpoint of step {closed}, the last one the log says is closed; "
                "put back the run's checkpoints or start a new run"
            )

    async def _follow_trajectories(self) -> None:
        self.views.forget_measured(before=self.history.last_closed_step)
        self.views.trajectories.open(self.history.last_closed_step + 1)
        if self.trainer.needs_trajectories:
            self.log.follow(Topic.TRAJECTORIES, self.views.on_trajectory)

    async def _publish_first(self) -> None:
        """The first version; or again the one that the weights are, where a resumed run no longer has its file."""
        opened = self.history.steps_opened.get(self.history.last_closed_step)
        version = opened.policy_version + 1 if opened is not None else 0
        known = self.history.policies.get(version)
        if self.history.newest_policy < 0 or (self.trainer.by_step and _is_lost(known)):
            await self._publish(version)

    async def _publish(self, version: int) -> None:
        published = await self.trainer.publish(version, self.generation)
        event = PolicyPublished(self.generation, version, published.location, published.sha256)
        await self.journal.to_epochs(event)

    async def _cut(self) -> None:
        """A place to resume from, after the last closed step."""
        if self.cuts is not None:
            await self.cuts.take(self.log, self.history.last_closed_step)

    # Epochs

    async def _epoch(self, epoch: int) -> None:
        await self._open_epoch(epoch)
        if self.pool.epoch < epoch:
            await self._train_on_pool(epoch)
        if not self.trainer.by_step and self.history.newest_policy < epoch:
            await self._publish(epoch)
        if epoch % self.rules.learner.evaluate_every == 0 or epoch == self.configured.epochs:
            await self._evaluate(epoch)
        await self.journal.to_epochs(EpochClosed(self.generation, epoch, self.pool.version, self.pool.digest))
        await self._cut()
        self.seals.forget_before(epoch, last_seed_step(self.rules, self.history.last_closed_step))

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
        await close_epoch(self.journal, self.rules, epoch, plans[-1].step)
        await write_current_pool(self.journal, self.pools)

    async def _open_epoch(self, epoch: int) -> None:
        if epoch not in self.history.epochs_opened:
            fields = self.provenance
            await self.journal.to_epochs(
                EpochOpened(
                    generation=self.generation,
                    epoch=epoch,
                    rules=self.configured.canonical(),
                    partitions=self.log.partitions,
                    code_revision=fields.code_revision,
                    packages=fields.packages,
                    source_digest=fields.source_digest,
                    model_digest=fields.model_digest,
                    tokenizer_digest=fields.tokenizer_digest,
                )
            )
        self.rules = Rules.parse(self.history.epochs_opened[epoch].rules)
        self.in_flight = InFlight.under(self.rules)

    # Steps

    async def _step(self, plan: StepPlan) -> None:
        opened = await self._open_step(plan)
        self.views.trajectories.open(opened.step)
        self.in_flight.open(opened.step, len(opened.groups))
        if not self.seals.complete(opened.step):
            await self._request(opened.groups, opened.epoch, opened.step, opened.k, opened.policy_version)
            await self._measured(opened.groups, opened.k, self.rules.rollout.deadline_seconds)
            await self._seal(opened)
        self.in_flight.sealed(opened.step)
        batch = await self._batch(opened)
        started = self.log.clock()
        metrics = await self.trainer.train(batch)
        seconds = (self.log.clock() - started) / 1e6
        if self.trainer.by_step:
            await self._save(opened)
            await self._publish(opened.policy_version + 1)
        await self._close_step(opened, batch, metrics, seconds)
        if self.cuts is not None and self.cuts.due(opened.step) and not opened.last_of_epoch:
            await self._cut()
        self.views.forget_measured(before=opened.step)
        self.views.trajectories.open(opened.step + 1)

    async def _batch(self, opened: StepOpened) -> StepBatch:
        """A trajectory stands in the log before the result that names it, but nothing orders the reading of two topics:
        before one counts as missing, everything the log has is read."""
        groups, buffer = self.seals.steps[opened.step].groups(), self.views.trajectories
        if self.trainer.needs_trajectories and not awaited(groups) <= buffer.held.keys():
            await self.log.read_up(Topic.TRAJECTORIES)
        return step_batch(groups, buffer.held, opened.policy_version, self.in_flight)

    async def _save(self, opened: StepOpened) -> None:
        progress = {"epoch": opened.epoch, "step": opened.step, "last": opened.last_of_epoch, "run": self.log.run_id}
        await self.trainer.save(opened.step, self.generation, progress)

    async def _open_step(self, plan: StepPlan) -> StepOpened:
        if plan.step not in self.history.steps_opened:
            await self.journal.to_epochs(
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
        """Asks for the groups that no measurement shows. A new generation asks again: older requests are fenced off."""
        deadline = self.log.clock() + int(self.rules.rollout.deadline_seconds * 1e6)
        requests = [
            self.asking.request(group, epoch, step, k, policy_version, deadline)
            for group in groups
            if self.asking.asked(group, k) not in self.views.measured
        ]
        await self.log.write(
            [
                Write(Topic.ASSIGNMENTS, self.journal.partition(request.task), request.task, request)
                for request in requests
            ]
        )

    async def _measured(self, groups: Sequence[PlannedGroup], k: int, seconds: float) -> None:
        """Waits for a measurement of every group. Past the deadline the barrier decides what is missing."""
        wanted, views = {self.asking.asked(group, k) for group in groups}, self.views
        if not await self.journal.wait("rollouts", lambda: wanted <= views.measured.keys(), seconds):
            late = len(wanted - views.measured.keys())
            logger.warning("%d of %d groups were not measured in time", late, len(wanted))

    async def _seal(self, opened: StepOpened) -> None:
        """Barriers on every partition, then the seals that answer them."""
        rules = self.history.epochs_opened[opened.epoch].rules
        await self.log.write(
            Write(Topic.ROLLOUTS, partition, self.log.run_id, self.asking.barrier(opened, partition, rules))
            for partition in range(self.log.partitions)
        )
        if not await self.journal.wait("seals", lambda: self.seals.complete(opened.step), SEAL_SECONDS):
            raise LearnerError(
                f"step {opened.step} was not sealed in {SEAL_SECONDS:.0f} s; see that `rods streams work` is running"
            )

    async def _close_step(
        self, opened: StepOpened, batch: StepBatch, metrics: StepMetrics | None, seconds: float
    ) -> None:
        await self.journal.to_epochs(
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
                unmatched=batch.unmatched if self.trainer.needs_trajectories else 0,
                progress=batch.progress,
                loss=metrics.loss if metrics else None,
                kl=metrics.kl if metrics else None,
                entropy=metrics.entropy if metrics else None,
                clip_share=metrics.clip_share if metrics else None,
                gradient_norm=metrics.gradient_norm if metrics else None,
                response_length=metrics.response_length if metrics else None,
                tokens_per_second=metrics.tokens / seconds if metrics and seconds > 0 else None,
                idle_seconds=self.journal.take_idle(),
            )
        )

    # Evaluation

    async def _evaluate(self, epoch: int) -> None:
        """The held-out tasks, as the newest policy does them. Enters no barrier and decides nothing."""
        version, step = self.history.newest_policy, self.history.last_closed_step
        groups = held_out_groups(self.rules, epoch, step, list(self.pool.heldout))
        temperature = self.rules.rollout.temperature
        if not groups or (str(version), TaskSet.HELDOUT.value, str(temperature)) in self.history.evaluated:
            return
        k = self.rules.learner.evaluate_k
        await self._request(groups, epoch, step, k, version)
        await self._measured(groups, k, EVALUATION_SECONDS)
        asked, measured = [self.asking.asked(group, k) for group in groups], self.views.measured
        found = [measured[wanted] for wanted in asked if wanted in measured]
        results = tuple(EvaluatedTask(m.task, m.live, m.turns_passed, m.turns_total) for m in found)
        await self.journal.to_epochs(
            PolicyEvaluated(self.generation, version, TaskSet.HELDOUT, temperature, epoch, results)
        )


def _is_lost(published: PolicyPublished | None) -> bool:
    return published is None or not Path(published.location).is_file()
