"""A step: opened, its groups asked for, ended by barriers, trained on, published and closed.

What the log has of it already is not done again; only the training is, from the checkpoint before it.
"""

from typing import Any

from learner.engine import StepMetrics
from learner.errors import LearnerError
from learner.log import Write
from learner.measuring import measured, request
from learner.plan import StepPlan
from learner.samples import StepBatch, awaited, step_batch
from learner.training import Training
from schemas.epochs import StepClosed, StepOpened
from schemas.topics import Topic

SEAL_SECONDS = 300.0


async def run_step(training: Training, plan: StepPlan) -> None:
    """Raises LearnerError where the streams service does not seal the step in time."""
    views, trainer, clock = training.journal.views, training.trainer, training.journal.log.clock
    opened = await _open(training, plan)
    views.trajectories.open(opened.step)
    training.in_flight.open(opened.step, len(opened.groups))
    if not training.seals.complete(opened.step):
        await request(training, opened.groups, opened.epoch, opened.step, opened.k, opened.policy_version)
        await measured(training, opened.groups, opened.k, training.rules.rollout.deadline_seconds)
        await _seal(training, opened)
    training.in_flight.sealed(opened.step)
    batch = await _batch(training, opened)
    started = clock()
    metrics = await trainer.train(batch)
    seconds = (clock() - started) / 1e6
    if trainer.by_step:
        await _save(training, opened)
        await training.publish(opened.policy_version + 1)
    await _close(training, opened, batch, _figures(metrics, seconds))
    if training.cuts is not None and training.cuts.due(opened.step) and not opened.last_of_epoch:
        await training.cut()
    views.forget_measured(before=opened.step)
    views.trajectories.open(opened.step + 1)


async def _open(training: Training, plan: StepPlan) -> StepOpened:
    history = training.history
    if plan.step not in history.steps_opened:
        await training.journal.to_epochs(
            StepOpened(
                generation=training.journal.generation,
                epoch=plan.epoch,
                step=plan.step,
                groups=plan.groups,
                k=training.rules.rollout.k,
                policy_version=history.newest_policy,
                last_of_epoch=plan.last_of_epoch,
            )
        )
    return history.steps_opened[plan.step]


async def _seal(training: Training, opened: StepOpened) -> None:
    """Barriers on every partition, then the seals that answer them."""
    rules, log = training.history.epochs_opened[opened.epoch].rules, training.journal.log
    await log.write(
        Write(Topic.ROLLOUTS, partition, log.run_id, training.asking.barrier(opened, partition, rules))
        for partition in range(log.partitions)
    )
    if not await training.journal.wait("seals", lambda: training.seals.complete(opened.step), SEAL_SECONDS):
        raise LearnerError(
            f"step {opened.step} was not sealed in {SEAL_SECONDS:.0f} s; see that `rods streams work` is running"
        )


async def _batch(training: Training, opened: StepOpened) -> StepBatch:
    """A trajectory is in the log before the result that names it, but nothing orders the reading of two topics:
    before one counts as missing, everything the log has is read."""
    groups, buffer = training.seals.steps[opened.step].groups(), training.journal.views.trajectories
    if training.trainer.needs_trajectories and not awaited(groups) <= buffer.held.keys():
        await training.journal.log.read_up(Topic.TRAJECTORIES)
    return step_batch(groups, buffer.held, opened.policy_version, training.in_flight)


async def _save(training: Training, opened: StepOpened) -> None:
    run, last = training.journal.log.run_id, opened.last_of_epoch
    progress = {"epoch": opened.epoch, "step": opened.step, "last": last, "run": run}
    await training.trainer.save(opened.step, training.journal.generation, progress)


def _figures(metrics: StepMetrics | None, seconds: float) -> dict[str, Any]:
    """What StepClosed says of the training; None throughout where nothing was trained."""
    names = ("loss", "kl", "entropy", "clip_share", "gradient_norm", "response_length")
    rate = metrics.tokens / seconds if metrics and seconds > 0 else None
    return {**{name: getattr(metrics, name, None) for name in names}, "tokens_per_second": rate}


async def _close(training: Training, opened: StepOpened, batch: StepBatch, figures: dict[str, Any]) -> None:
    await training.journal.to_epochs(
        StepClosed(
            generation=training.journal.generation,
            epoch=opened.epoch,
            step=opened.step,
            policy_version=opened.policy_version,
            measured=batch.measured,
            missing=batch.missing,
            flat=batch.flat,
            trained=batch.trained,
            stale=batch.stale,
            unmatched=batch.unmatched if training.trainer.needs_trajectories else 0,
            progress=batch.progress,
            **figures,
            idle_seconds=training.journal.take_idle(),
        )
    )
