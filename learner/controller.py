"""The learner's loop, from the log and back to it.

    StepOpened -> GroupRequested -> ... TaskMeasured (a hint) -> BarrierReached -> N x PartitionSealed
        -> batch (seals + trajectories) -> train -> PolicyPublished -> StepClosed
    after an epoch's last step: SelectionClosed -> SeedSettled of every seed -> BoundaryOpened
        -> decisions -> PoolMaterialized -> evaluation -> EpochClosed

| phase    | module     | consumes               | waits for                    | produces                        |
|----------|------------|------------------------|------------------------------|---------------------------------|
| begin    | takeover   | epochs, pool           | its claim on every partition | LearnerStarted, TaskRegistered  |
| step     | step       | measurements, seals    | every group, or the deadline | StepOpened, requests, barriers  |
| train    | step       | seals, trajectories    | N seals of the step          | PolicyPublished, StepClosed     |
| boundary | boundary   | seals, pool            | settled seeds, or expiry     | decisions, PoolMaterialized     |
| evaluate | evaluation | measurements           | every group, or the deadline | requests, PolicyEvaluated       |

Each phase asks the log first: what is there already is taken from it, so that a new generation goes on where the last
one stopped. Decisions depend on seals and pool alone.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from learner.boundary import close_epoch, last_seed_step, write_current_pool
from learner.cuts import Cuts
from learner.errors import LearnerError
from learner.evaluation import evaluate
from learner.journal import Journal
from learner.log import LearnerLog
from learner.plan import plan_epoch
from learner.step import run_step
from learner.takeover import claim, refuse_another_run, register, take_up_model
from learner.trainer import Trainer
from learner.training import Training
from learner.views import Views
from schemas.epochs import EpochClosed, EpochOpened
from schemas.rules import Rules
from schemas.task import TaskDefinition
from streams.pool.decide import probes_of
from streams.pool.state import PoolState


@dataclass(frozen=True, slots=True)
class RunProvenance:
    """What EpochOpened records beside the rules, under the same names. The digests are sha256, hexadecimal."""

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
        provenance: RunProvenance,
        originals: Sequence[TaskDefinition],
        heldout: Sequence[TaskDefinition],
        pools: Path,
        nonce: str,
        cuts: Cuts | None = None,
    ) -> None:
        self.log, self.trainer, self.provenance, self.cuts = log, trainer, provenance, cuts
        self.originals, self.heldout, self.pools, self.nonce = originals, heldout, pools, nonce
        self.configured = rules
        self.journal = Journal(log, Views())
        self.training = Training(self.journal, trainer, rules, cuts)
        self.history, self.seals = self.journal.views.history, self.journal.views.seals

    @property
    def pool(self) -> PoolState:
        return self.training.pool

    async def run(self) -> None:
        """Trains all epochs. Raises SupersededError once another learner owns the run, LearnerError, LogError."""
        try:
            await self.log.start(self.journal.views.folds())
            await self._begin()
            for epoch in range(1, self.configured.epochs + 1):
                if epoch not in self.history.epochs_closed:
                    await self._epoch(epoch)
            if self.cuts is not None:
                await self.cuts.finish()
        finally:
            if self.cuts is not None:
                await self.cuts.stop()
            await self.log.stop()

    async def _begin(self) -> None:
        """Up to the first step that the log does not have."""
        refuse_another_run(self.journal)
        await claim(self.journal, self.nonce)
        await register(self.journal, self.configured, self.originals, self.heldout)
        await write_current_pool(self.journal, self.pools)
        await take_up_model(self.training)
        await self._open_epoch(1)
        if not self.history.steps_opened:
            await self.training.cut()
            await evaluate(self.training, 0)

    async def _epoch(self, epoch: int) -> None:
        await self._open_epoch(epoch)
        rules, generation = self.training.rules, self.journal.generation
        if self.pool.epoch < epoch:
            await self._train_on_pool(epoch)
        if not self.trainer.by_step and self.history.newest_policy < epoch:
            await self.training.publish(epoch)
        if epoch % rules.learner.evaluate_every == 0 or epoch == self.configured.epochs:
            await evaluate(self.training, epoch)
        await self.journal.to_epochs(EpochClosed(generation, epoch, self.pool.version, self.pool.digest))
        await self.training.cut()
        self.seals.forget_before(epoch, last_seed_step(rules, self.history.last_closed_step))

    async def _open_epoch(self, epoch: int) -> None:
        if epoch not in self.history.epochs_opened:
            await self.journal.to_epochs(
                EpochOpened(
                    generation=self.journal.generation,
                    epoch=epoch,
                    rules=self.configured.canonical(),
                    partitions=self.log.partitions,
                    **asdict(self.provenance),
                )
            )
        self.training.under(Rules.parse(self.history.epochs_opened[epoch].rules))

    async def _train_on_pool(self, epoch: int) -> None:
        """The epoch's steps, and the boundary after them."""
        rules, pool = self.training.rules, self.pool.cut or self.pool
        if pool.epoch != epoch - 1:
            raise LearnerError(f"epoch {epoch} cannot be planned from the pool of epoch {pool.epoch}")
        first, probes = self.history.first_step_of(epoch), probes_of(pool, rules)
        plans = plan_epoch(rules, epoch, first, list(pool.members), probes)
        for plan in plans:
            if plan.step not in self.history.steps_closed:
                await run_step(self.training, plan)
        await close_epoch(self.journal, rules, epoch, plans[-1].step)
        await write_current_pool(self.journal, self.pools)
