"""What a learner asks for, as events: groups of rollouts, and the barrier that ends a step's. Pure."""

from dataclasses import dataclass

from learner.views import Asked
from schemas.epochs import PlannedGroup, StepOpened
from schemas.rollouts import BarrierReached, ExpectedGroup, GroupRequested
from schemas.rules import Rules
from schemas.topics import partition_of
from streams.pool.state import PoolState


@dataclass(frozen=True, slots=True)
class Asking:
    """One generation, under an epoch's rules, about a pool. partitions: N."""

    generation: int
    rules: Rules
    pool: PoolState
    partitions: int

    def asked(self, group: PlannedGroup, k: int) -> Asked:
        """What a measurement must be of to answer."""
        definition = self.pool.definitions[group.task]
        return Asked(group.group, group.task, group.purpose, definition.category, k, definition.turns_total)

    def request(
        self, group: PlannedGroup, epoch: int, step: int, k: int, policy_version: int, deadline: int
    ) -> GroupRequested:
        """The request of a group. deadline: microseconds since the epoch of Unix."""
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

    def barrier(self, opened: StepOpened, partition: int, rules: str) -> BarrierReached:
        """The barrier of a step on a partition, with the groups that lie there. rules: as the epoch was opened with."""
        there = [group for group in opened.groups if partition_of(group.task, self.partitions) == partition]
        return BarrierReached(
            generation=self.generation,
            epoch=opened.epoch,
            step=opened.step,
            partition=partition,
            partitions=self.partitions,
            expected=tuple(self._expected(group, opened.k) for group in there),
            rules=rules,
            last_of_epoch=opened.last_of_epoch,
            pool_offset=self.pool.materialized_offset,
        )

    def _expected(self, group: PlannedGroup, k: int) -> ExpectedGroup:
        definition = self.pool.definitions[group.task]
        return ExpectedGroup(group.group, group.task, group.purpose, k, definition.turns_total, definition.category)
