"""What the seals of a run say to the pool and to the learner: a fold over `rods.seals`.

A step is complete when all chunks of its N seals are in. The first chunk of a key counts. Steps older than the epoch
in hand are let go of, so that memory stays that of two epochs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.rollouts import Purpose
from schemas.seals import PartitionSealed, SealedGroup, SelectedSeed, SelectionClosed, TaskState


@dataclass(slots=True)
class SealedStep:
    """The seals of a step as they come in: (partition, chunk) to seal."""

    epoch: int
    step: int
    chunks: dict[tuple[int, int], PartitionSealed] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every chunk of every partition is in."""
        if not self.chunks:
            return False
        partitions = next(iter(self.chunks.values())).partitions
        heads = [self.chunks.get((partition, 0)) for partition in range(partitions)]
        wanted = sum(head.chunks for head in heads if head is not None)
        return all(head is not None for head in heads) and len(self.chunks) == wanted

    def groups(self) -> list[SealedGroup]:
        """The step's groups, ordered by partition and task."""
        return [group for key in sorted(self.chunks) for group in self.chunks[key].groups]

    def states(self) -> list[TaskState]:
        """The states that the last seals of an epoch carry."""
        return [state for key in sorted(self.chunks) for state in self.chunks[key].state]


@dataclass(slots=True)
class SealLog:
    """Sealed steps and selections by step, in memory for the epoch in hand and the one before."""

    next_offset: int = 0
    steps: dict[int, SealedStep] = field(default_factory=dict)
    selections: dict[int, SelectionClosed] = field(default_factory=dict)

    def evolve(self, offset: int, event: Any) -> None:
        """Takes the event at `offset`; offsets already seen and second facts of a key change nothing."""
        if offset < self.next_offset:
            return
        self.next_offset = offset + 1
        match event:
            case PartitionSealed():
                step = self.steps.setdefault(event.step, SealedStep(event.epoch, event.step))
                step.chunks.setdefault((event.partition, event.chunk), event)
            case SelectionClosed():
                self.selections.setdefault(event.step, event)
            case _:
                raise TypeError(f"rods.seals carries no {type(event).__name__}")

    def complete(self, step: int) -> bool:
        """Whether every seal of a step is in."""
        return step in self.steps and self.steps[step].complete

    def seeds(self, last_step: int) -> list[SelectedSeed]:
        """The seeds selected up to a step, in order of selection, as far as they are still held."""
        steps = sorted(step for step in self.selections if step <= last_step)
        return [seed for step in steps for seed in self.selections[step].seeds]

    def evidence(self, epoch: int, last_step: int) -> "Evidence":
        """What an epoch's seals say up to its last step. Raises ValueError where a seal or selection is missing."""
        steps = [step for step in sorted(self.steps) if self.steps[step].epoch == epoch and step <= last_step]
        missing = [step for step in steps if not self.steps[step].complete or step not in self.selections]
        if missing or (epoch > 0 and (not steps or steps[-1] != last_step)):
            raise ValueError(f"the seals of epoch {epoch} up to step {last_step} are not complete")
        groups = [group for step in steps for group in self.steps[step].groups()]
        states = {state.task: state for state in (self.steps[last_step].states() if steps else [])}
        digest = self.selections[last_step].digest if steps else ""
        return Evidence(epoch, digest, {g.task: g for g in groups if Purpose(g.purpose).measured}, states)

    def forget_before(self, epoch: int) -> None:
        """Lets go of the steps of earlier epochs."""
        for step in [number for number, sealed in self.steps.items() if sealed.epoch < epoch]:
            del self.steps[step]
        for step in [number for number, closed in self.selections.items() if closed.epoch < epoch]:
            del self.selections[step]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a boundary decides on: the epoch's sealed group per task, every task's state after its last step, and the
    digest of its last selection."""

    epoch: int
    selection_digest: str
    groups: Mapping[str, SealedGroup]
    states: Mapping[str, TaskState]
