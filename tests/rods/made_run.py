"""A small run, made of events: two originals, one variant, two epochs of one step, evaluations before and after."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rods.reports.summary import RunSummary, SummaryFold
from schemas.envelope import stamp
from schemas.epochs import (
    AlarmRaised,
    EpochClosed,
    EpochOpened,
    EvaluatedTask,
    PlannedGroup,
    PolicyEvaluated,
    StepClosed,
    StepOpened,
)
from schemas.pool import (
    PoolMaterialized,
    SeedSettled,
    TaskInjected,
    TaskRegistered,
    TaskRetired,
    TaskSet,
    VariantVerified,
)
from schemas.rollouts import Purpose, TaskMeasured
from schemas.rules import Rules
from schemas.seals import PartitionSealed, SealedGroup, SelectedSeed, SelectionClosed, TaskState
from schemas.synthesis import VariantRejected
from schemas.task import TaskDefinition, Turn

SECOND = 1_000_000


def definition(task: str, parent: str | None = None) -> TaskDefinition:
    return TaskDefinition(task, "workbench", "base", task, ("Files",), "{}", (Turn(("do",), ("a()",)),) * 4, parent)


def sealed_group(
    task: str, *passed: int | None, epoch: int = 1, zone: str = "boundary", purpose: str = Purpose.TRAIN
) -> SealedGroup:
    """A group of a task of four turns."""
    return SealedGroup(
        group=f"g-{epoch}-{task}-{purpose}",
        task=task,
        purpose=purpose,
        category="base",
        execution="x",
        turns_total=4,
        passed=passed,
        reasons=("",) * len(passed),
        policy_versions=(0,) * len(passed),
        trajectories=("",) * len(passed),
        zone=zone,
        boundary=zone == "boundary",
        state=TaskState(task, "base", (), 1, 0, 0),
    )


def seal(*groups: SealedGroup, epoch: int = 1, step: int = 1, partition: int = 0) -> PartitionSealed:
    return PartitionSealed(epoch, step, partition, 2, 0, 1, 9, True, "{}", 3, "d", groups, (), 0, 0, 0)


def closed(epoch: int, step: int, trained: int) -> StepClosed:
    return StepClosed(
        generation=1,
        epoch=epoch,
        step=step,
        policy_version=0,
        measured=3,
        missing=0,
        flat=1,
        trained=trained,
        stale=0,
        unmatched=0,
        progress=None,
        loss=None,
        kl=None,
        entropy=None,
        clip_share=None,
        gradient_norm=None,
        response_length=None,
        tokens_per_second=None,
        idle_seconds={},
    )


def pool(epoch: int, *members: str, queue: tuple[str, ...] = ()) -> PoolMaterialized:
    return PoolMaterialized(1, epoch, epoch, f"digest-{epoch}", "", members, queue, 0, 0, {})


def evaluated(epoch: int, temperature: float = 1.0, **passed: int) -> PolicyEvaluated:
    results = tuple(EvaluatedTask(task, 4, turns, 4) for task, turns in passed.items())
    return PolicyEvaluated(1, epoch, TaskSet.HELDOUT, temperature, epoch, results)


def selection(epoch: int, step: int, *tasks: str) -> SelectionClosed:
    seeds = tuple(SelectedSeed(f"s-{task}", task, "base", "1/1", "1/4", 0, ()) for task in tasks)
    return SelectionClosed(epoch, step, seeds, 2, 3, "chain")


def rejected(reason: str, attempt: int, epoch: int = 1) -> VariantRejected:
    return VariantRejected("s-a", "a", epoch, 1, 0, attempt, "critique", reason, (), 0, "rules")


def step_opened(epoch: int, step: int, *tasks: str) -> StepOpened:
    groups = tuple(PlannedGroup(f"g-{epoch}-{task}-train", task, Purpose.TRAIN) for task in tasks)
    return StepOpened(1, epoch, step, groups, 4, 0, True)


def measured(epoch: int, task: str) -> TaskMeasured:
    group = f"g-{epoch}-{task}-train"
    return TaskMeasured(group, epoch, 1, task, "train", "base", 0.5, 1.0, 0.1, 4, 0, 8, 4, 1, "boundary", 0)


def opened(epoch: int) -> EpochOpened:
    return EpochOpened(1, epoch, Rules().canonical(), 2, "revision", {}, "", "", "")


@dataclass(slots=True)
class Log:
    """Events stamped a second apart."""

    events: list[Any] = field(default_factory=list)

    def add(self, *events: Any) -> None:
        for event in events:
            now = SECOND * (len(self.events) + 1)
            self.events.append(stamp(event, run_id="made", occurred_at=now, producer="learner"))


def made_run() -> list[Any]:
    """All its events, in an order that a run would give."""
    log = Log()
    for task, task_set in (("a", "pool"), ("b", "pool"), ("h1", "heldout"), ("h2", "heldout")):
        log.add(TaskRegistered(1, definition(task), task_set))
    log.add(pool(0, "a", "b"), evaluated(0, h1=4, h2=8))
    log.add(opened(1), step_opened(1, 1, "a", "b"), measured(1, "a"), measured(1, "b"))
    log.add(seal(sealed_group("a", 1, 3, 2, None)), seal(sealed_group("b", 0, 0, 0, 0, zone="hard"), partition=1))
    log.add(closed(1, 1, trained=1), selection(1, 1, "a"))
    log.add(rejected("profile_distance", 0), rejected("duplicate", 1), rejected("duplicate", 2))
    log.add(VariantVerified("s-a", 1, 1, 0, definition("v-1", "a"), "content"))
    log.add(VariantVerified("s-a", 1, 1, 0, definition("v-2", "a"), "other"))
    log.add(SeedSettled(0, "s-a", 1, 1, "done", 2), TaskInjected(1, 1, "v-1", "s-a", False))
    log.add(pool(1, "a", "b", "v-1", queue=("v-2",)), evaluated(1, h1=8, h2=8), EpochClosed(1, 1, 1, "digest-1"))
    log.add(opened(2), step_opened(2, 2, "a", "b", "v-1"), measured(2, "a"))
    log.add(
        seal(
            sealed_group("a", 4, 4, 4, 4, epoch=2, zone="mastered"),
            sealed_group("b", 2, 0, 2, 0, epoch=2),
            sealed_group("v-1", 0, 0, 0, 1, epoch=2, zone="hard"),
            sealed_group("gone", 4, 4, 4, 4, epoch=2, purpose=Purpose.PROBE),
            epoch=2,
            step=2,
        )
    )
    log.add(closed(2, 2, trained=2), selection(2, 2), TaskRetired(1, 2, "v-1", "burn_in", "1/16", "15/64", 1, ()))
    log.add(AlarmRaised(1, "starvation", 2, 2, "nothing was injected"))
    log.add(pool(2, "a", "b"), evaluated(2, h1=12, h2=8), EpochClosed(1, 2, 2, "digest-2"))
    return log.events


def summary_of(events: Iterable[Any]) -> RunSummary:
    fold = SummaryFold()
    for event in events:
        fold.evolve(event)
    return fold.summary()


def summary(*reasons: str) -> RunSummary:
    """Of the run, in which variants were rejected for these reasons too."""
    more = [rejected(reason, 10 + attempt) for attempt, reason in enumerate(reasons)]
    stamped = [stamp(event, run_id="made", occurred_at=1, producer="synthesis") for event in more]
    return summary_of([*made_run(), *stamped])
