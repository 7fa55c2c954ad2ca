"""The view of an accepted result: what people and dashboards see of a group. Nothing is decided by it. Pure."""

from typing import NamedTuple

from schemas.envelope import Producer, derived_envelope
from schemas.rollouts import RolloutFinished, TaskMeasured
from streams.measure.outcome import Outcome


class Accepted(NamedTuple):
    """A result that counts, judged. visits, zone: its task's with this result; 0 and empty for a group to evaluate."""

    event: RolloutFinished
    outcome: Outcome
    visits: int = 0
    zone: str = ""

    def view(self) -> TaskMeasured:
        """The event to write."""
        event, moments = self.event, self.outcome.moments
        shown = moments.shown if moments.n else None
        return TaskMeasured(
            group=event.group,
            epoch=event.epoch,
            step=event.step,
            task=event.task,
            purpose=event.purpose,
            category=event.category,
            mean=shown.mean if shown else None,
            phi=shown.phi if shown else None,
            variance=shown.variance if shown else None,
            live=moments.n,
            failed=event.k - moments.n,
            turns_passed=moments.sum_passed,
            turns_total=event.turns_total,
            visits=self.visits,
            zone=self.zone,
            policy_version=max(self.outcome.policy_versions),
            envelope=derived_envelope(TaskMeasured.KIND, (event.group,), event.envelope, Producer.MEASURE),
        )
