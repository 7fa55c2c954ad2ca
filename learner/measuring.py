"""Groups on their way: asked for, and waited for until each is measured or the time is over."""

import logging
from collections.abc import Sequence

from learner.log import Write
from learner.training import Training
from schemas.epochs import PlannedGroup
from schemas.topics import Topic

logger = logging.getLogger(__name__)


async def request(
    training: Training, groups: Sequence[PlannedGroup], epoch: int, step: int, k: int, policy_version: int
) -> None:
    """Asks for the groups that no measurement shows. A new generation asks again: older requests are fenced off."""
    journal, asking = training.journal, training.asking
    deadline = journal.log.clock() + int(training.rules.rollout.deadline_seconds * 1e6)
    requests = [
        asking.request(group, epoch, step, k, policy_version, deadline)
        for group in groups
        if asking.asked(group, k) not in journal.views.measured
    ]
    await journal.log.write(
        [Write(Topic.ASSIGNMENTS, journal.partition(request.task), request.task, request) for request in requests]
    )


async def measured(training: Training, groups: Sequence[PlannedGroup], k: int, seconds: float) -> None:
    """Waits for a measurement of every group. Past the deadline the barrier decides what is missing."""
    asking, views = training.asking, training.journal.views
    wanted = {asking.asked(group, k) for group in groups}
    if not await training.journal.wait("rollouts", lambda: wanted <= views.measured.keys(), seconds):
        late = len(wanted - views.measured.keys())
        logger.warning("%d of %d groups were not measured in time", late, len(wanted))
