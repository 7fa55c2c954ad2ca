"""The held-out tasks, as the newest policy does them. An evaluation enters no barrier and decides nothing."""

from learner.measuring import measured, request
from learner.plan import held_out_groups
from learner.training import Training
from schemas.epochs import EvaluatedTask, PolicyEvaluated
from schemas.pool import TaskSet

EVALUATION_SECONDS = 600.0


async def evaluate(training: Training, epoch: int) -> None:
    """Measures the held-out tasks after an epoch, unless the log has the evaluation already."""
    history, journal, rules = training.history, training.journal, training.rules
    version, step, temperature = history.newest_policy, history.last_closed_step, rules.rollout.temperature
    groups = held_out_groups(rules, epoch, step, list(training.pool.heldout))
    if not groups or (str(version), TaskSet.HELDOUT.value, str(temperature)) in history.evaluated:
        return
    k = rules.learner.evaluate_k
    await request(training, groups, epoch, step, k, version)
    await measured(training, groups, k, EVALUATION_SECONDS)
    asked, known = [training.asking.asked(group, k) for group in groups], journal.views.measured
    found = [known[wanted] for wanted in asked if wanted in known]
    results = tuple(EvaluatedTask(m.task, m.live, m.turns_passed, m.turns_total) for m in found)
    await journal.to_epochs(PolicyEvaluated(journal.generation, version, TaskSet.HELDOUT, temperature, epoch, results))
