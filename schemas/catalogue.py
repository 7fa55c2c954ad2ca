"""Which event types exist and which topic carries which. Order here is the order of documentation."""

from typing import Any

from schemas import epochs, pool, rollouts, seals, synthesis

EVENT_TYPES: tuple[type[Any], ...] = (
    epochs.LearnerStarted,
    epochs.EpochOpened,
    epochs.StepOpened,
    epochs.StepClosed,
    epochs.EpochClosed,
    epochs.PolicyPublished,
    epochs.PolicyEvaluated,
    epochs.AlarmRaised,
    rollouts.GroupRequested,
    rollouts.RolloutFinished,
    rollouts.BarrierReached,
    rollouts.TrajectoryRecorded,
    rollouts.TaskMeasured,
    seals.PartitionSealed,
    seals.SelectionClosed,
    seals.BoundarySeedSelected,
    synthesis.StageFinished,
    synthesis.VariantRejected,
    pool.TaskRegistered,
    pool.VariantVerified,
    pool.SeedSettled,
    pool.BoundaryOpened,
    pool.TaskInjected,
    pool.TaskRetired,
    pool.TaskProbed,
    pool.PoolMaterialized,
    pool.OperatorDecided,
    pool.EventRefused,
)

BY_KIND: dict[str, type[Any]] = {event_type.KIND: event_type for event_type in EVENT_TYPES}
