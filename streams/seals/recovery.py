"""Seals to state: `rods.seals` is the changelog of measure. Pure.

A worker that gains a partition folds that partition's complete seals into the state that its last barrier left, skips
the events up to that barrier (`next_offset` is one past it) and folds the rest again. Nothing but the tasks and the
newest generation outlives a barrier, so that state equals the one of a worker that never stopped.
"""

from dataclasses import dataclass, field, replace

from schemas.seals import PartitionSealed
from streams.errors import UnassembledSealError
from streams.measure.barrier import parsed_rules
from streams.measure.grown import Grown
from streams.measure.state import Counts, MeasureState
from streams.seals.assembly import Assembly, assemble


@dataclass(frozen=True, slots=True)
class Recovery:
    """The state of one partition as its seals so far tell it, and chunks that wait."""

    state: MeasureState
    assembly: Assembly = field(default_factory=Assembly)


def recover(recovery: Recovery, chunk: PartitionSealed) -> Recovery:
    """Takes the next chunk of the partition's seals. A seal that is already in changes nothing.

    Raises UnassembledSealError where a seal is missing before this one, unless it is a snapshot seal.
    """
    if chunk.partition != recovery.state.partition or chunk.step <= recovery.state.step:
        return recovery
    assembly, seal = assemble(recovery.assembly, chunk)
    if seal is None:
        return replace(recovery, assembly=assembly)
    return Recovery(restored(recovery.state, seal), assembly)


def restored(state: MeasureState, seal: PartitionSealed) -> MeasureState:
    """The state right after the barrier that a complete seal answers."""
    if not seal.last_of_epoch and seal.step != state.step + 1:
        raise UnassembledSealError(
            f"the seal of step {seal.step} on partition {seal.partition} follows that of step {state.step}: "
            "rods.seals has lost a seal and must be restored from the archive"
        )
    rules = parsed_rules(seal.rules)
    if rules is None:
        raise UnassembledSealError(f"the rules in the seal of step {seal.step} do not parse")
    if seal.last_of_epoch:
        tasks = {task.task: task for task in seal.state}
    else:
        tasks = {**state.tasks, **{group.task: group.state for group in seal.groups}}
    return MeasureState(
        partition=seal.partition,
        partitions=seal.partitions,
        next_offset=seal.barrier_offset + 1,
        epoch=seal.epoch,
        step=seal.step,
        generation=seal.generation,
        rules=rules,
        tasks=tasks,
        results=Grown(),
        counts=Counts(),
    )
