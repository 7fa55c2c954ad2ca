"""How a generation begins: it claims the run, registers the tasks where none did, and takes up the model."""

from collections.abc import Sequence
from pathlib import Path

from learner.boundary import close_boundary
from learner.errors import LearnerError, SupersededError
from learner.generation import claim_generation
from learner.journal import Journal
from learner.training import Training
from schemas.epochs import PolicyPublished
from schemas.pool import TaskRegistered, TaskSet
from schemas.rules import Rules
from schemas.task import TaskDefinition
from schemas.topics import Topic


def refuse_another_run(journal: Journal) -> None:
    """Raises LearnerError where the log is another run's, or has another number of partitions."""
    history, log = journal.views.history, journal.log
    if history.run_id and history.run_id != log.run_id:
        raise LearnerError(
            f"the topics under the prefix {log.prefix} hold the run {history.run_id}; take another prefix"
        )
    for opened in history.epochs_opened.values():
        if opened.partitions != log.partitions:
            raise LearnerError(
                f"this run has {opened.partitions} partitions, which never changes; "
                f"start the learner with that number instead of {log.partitions}"
            )


async def claim(journal: Journal, nonce: str) -> None:
    """The generation, and a pool that has folded all that older generations wrote to it. Raises SupersededError, here
    and before every later write, once a newer one owns the run."""
    views, log = journal.views, journal.log
    journal.generation = await claim_generation(log, views.history, nonce)

    def still_mine() -> None:
        if max(views.history.generation, views.pool.generation) > journal.generation:
            raise SupersededError(journal.generation)

    log.guard = still_mine
    await log.wait_until(lambda: views.pool.generation >= journal.generation)


async def register(
    journal: Journal, rules: Rules, originals: Sequence[TaskDefinition], heldout: Sequence[TaskDefinition]
) -> None:
    """The originals, the held-out tasks, and the pool of epoch 0, unless the pool's log has them."""
    views = journal.views
    if views.pool.epoch >= 0:
        return
    sets = [(task, TaskSet.POOL) for task in originals] + [(task, TaskSet.HELDOUT) for task in heldout]
    await journal.to_pool(
        TaskRegistered(journal.generation, task, task_set)
        for task, task_set in sets
        if task.task not in views.pool.definitions
    )
    await close_boundary(journal, rules, epoch=0, last_step=0, selection_digest="")


async def take_up_model(training: Training) -> None:
    """The weights after the last closed step, published where no sampler finds them. Raises LearnerError."""
    await _restore(training)
    _follow_trajectories(training)
    await _publish_first(training)


async def _restore(training: Training) -> None:
    """Weights and optimiser as they were after the last closed step."""
    closed = training.history.last_closed_step
    if closed and await training.trainer.restore(closed) != closed:
        raise LearnerError(
            f"there is no checkpoint of step {closed}, the last one the log says is closed; "
            "put back the run's checkpoints or start a new run"
        )


def _follow_trajectories(training: Training) -> None:
    views, closed = training.journal.views, training.history.last_closed_step
    views.forget_measured(before=closed)
    views.trajectories.open(closed + 1)
    if training.trainer.needs_trajectories:
        training.journal.log.follow(Topic.TRAJECTORIES, views.on_trajectory)


async def _publish_first(training: Training) -> None:
    """The first version; or again the one that the weights are, where a resumed run no longer has its file."""
    history = training.history
    opened = history.steps_opened.get(history.last_closed_step)
    version = opened.policy_version + 1 if opened is not None else 0
    if history.newest_policy < 0 or (training.trainer.by_step and _is_lost(history.policies.get(version))):
        await training.publish(version)


def _is_lost(published: PolicyPublished | None) -> bool:
    return published is None or not Path(published.location).is_file()
