"""What the seals of a run say to the pool and to the learner: a fold over `rods.seals`.

A step is complete when the complete seals of its N partitions are in (see `streams.seals.assembly`); the first of a
partition counts, and so does the first selection that follows them, as in `streams.select`. Seals of earlier epochs can
be let go of, so that memory stays that of two epochs; selections stay until a boundary has included their seeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from schemas.rollouts import Purpose
from schemas.seals import PartitionSealed, SealedGroup, SelectedSeed, SelectionClosed, TaskState
from streams.seals.assembly import Assembly, assemble, is_complete


@dataclass(slots=True)
class SealedStep:
    """The complete seals of a step by partition, as they arrive."""

    epoch: int
    step: int
    seals: dict[int, PartitionSealed] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every partition's seal is in."""
        return is_complete(self.seals)

    def groups(self) -> list[SealedGroup]:
        """The step's groups, ordered by partition and task."""
        return [group for partition in sorted(self.seals) for group in self.seals[partition].groups]

    def states(self) -> dict[str, TaskState]:
        """Every task's state. Raises ValueError unless the step is the last of its epoch: no other seal carries it."""
        if not all(seal.last_of_epoch for seal in self.seals.values()):
            raise ValueError(f"step {self.step} is not the last of epoch {self.epoch}")
        return {state.task: state for seal in self.seals.values() for state in seal.state}


@dataclass(slots=True)
class SealedSteps:
    """Sealed steps and selections by step.

    closed: the last step whose selection is in.
    selected: every seed ever selected, and the step that selected it.
    contradicted: epoch to second facts that say something else than the first; they change nothing.
    """

    next_offset: int = 0
    closed: int = 0
    steps: dict[int, SealedStep] = field(default_factory=dict)
    selections: dict[int, SelectionClosed] = field(default_factory=dict)
    selected: dict[str, int] = field(default_factory=dict)
    assembly: Assembly = field(default_factory=Assembly)
    contradicted: dict[int, int] = field(default_factory=dict)

    def evolve(self, offset: int, event: Any) -> None:
        """Takes the event at `offset`; offsets already seen and second facts of a key change nothing."""
        if offset < self.next_offset:
            return
        self.next_offset = offset + 1
        match event:
            case PartitionSealed():
                self._sealed(event)
            case SelectionClosed():
                if event.step == self.closed + 1 and self.complete(event.step):
                    self.closed = event.step
                    self.selections[event.step] = event
                    self.selected |= {seed.seed: event.step for seed in event.seeds}
                elif event.step in self.selections:
                    self._repeated(event, self.selections[event.step].digest)
            case _:
                raise TypeError(f"rods.seals carries no {type(event).__name__}")

    def _sealed(self, chunk: PartitionSealed) -> None:
        known = self.steps.get(chunk.step)
        if known is not None and chunk.partition in known.seals:
            self._repeated(chunk, known.seals[chunk.partition].digest)
            return
        if chunk.step <= self.closed:
            return
        self.assembly, seal = assemble(self.assembly, chunk)
        if seal is not None:
            step = self.steps.setdefault(seal.step, SealedStep(seal.epoch, seal.step))
            step.seals[seal.partition] = seal

    def _repeated(self, event: PartitionSealed | SelectionClosed, first: str) -> None:
        if event.digest != first:
            self.contradicted[event.epoch] = self.contradicted.get(event.epoch, 0) + 1

    def complete(self, step: int) -> bool:
        """Whether every seal of a step is in."""
        return step in self.steps and self.steps[step].complete

    def seeds(self, last_step: int) -> list[SelectedSeed]:
        """The seeds selected up to a step, in order of selection, as far as they are still held."""
        steps = sorted(step for step in self.selections if step <= last_step)
        return [seed for step in steps for seed in self.selections[step].seeds]

    def evidence(self, epoch: int, last_step: int) -> "Evidence":
        """What an epoch's seals say up to its last step. Epoch 0, before training, has none.

        Raises ValueError where a seal or a selection is missing.
        """
        if epoch == 0:
            return Evidence(0, "", {}, {}, {})
        steps = [step for step in sorted(self.steps) if self.steps[step].epoch == epoch and step <= last_step]
        expected = list(range(steps[0], last_step + 1)) if steps else []
        if not steps or steps != expected or last_step > self.closed or not all(map(self.complete, steps)):
            raise ValueError(f"the seals of epoch {epoch} up to step {last_step} are not complete")
        groups = [group for step in steps for group in self.steps[step].groups()]
        return Evidence(
            epoch,
            self.selections[last_step].digest,
            {group.task: group for group in groups if _measured(group.purpose)},
            self.steps[last_step].states(),
            self.selected,
            self.contradicted.get(epoch, 0),
        )

    def forget_before(self, epoch: int, seed_step: int) -> None:
        """Lets go of the seals of earlier epochs, and of their selections up to `seed_step`, which are included."""
        for step in [number for number, sealed in self.steps.items() if sealed.epoch < epoch]:
            del self.steps[step]
        for step in [n for n, closed in self.selections.items() if closed.epoch < epoch and n <= seed_step]:
            del self.selections[step]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a boundary decides on: the epoch's sealed group per task, every task's state after its last step, and the
    digest of its last selection.

    selected: seeds and the steps that selected them, at least those of every step that the boundary includes; None:
        whoever asks has not read them, and takes every candidate for one of theirs.
    contradicted: the epoch's second seals and selections that say something else, for an alarm; they decide nothing.
    """

    epoch: int
    selection_digest: str
    groups: Mapping[str, SealedGroup]
    states: Mapping[str, TaskState]
    selected: Mapping[str, int] | None = None
    contradicted: int = 0


@cache
def _measured(purpose: str) -> bool:
    """Raises ValueError where it is none."""
    return Purpose(purpose).measured
