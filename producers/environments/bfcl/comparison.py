"""Our verdicts beside those of the package's checker, on the same cases in the same run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from producers.environments.bfcl.reference import ReferenceChecker, failed_turn
from producers.environments.bfcl.source import BfclSource
from producers.environments.corruption import Case
from producers.environments.judge import score
from schemas.task import TaskDefinition

BLOCK = 100


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A case on which the first failed turns differ; None stands for a record that passes."""

    index: int
    task: str
    kind: str
    ours: int | None
    reference: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """cases: compared. valid: how many pass under the checker. Seconds are CPU time of this thread."""

    cases: int
    valid: int
    disagreements: tuple[Disagreement, ...]
    seconds: float
    reference_seconds: float

    @property
    def ratio(self) -> float:
        """How many times as fast ours was."""
        return self.reference_seconds / self.seconds


def compare(
    tasks: Sequence[TaskDefinition], cases: Sequence[Case], advance: Callable[[int], None] = lambda _: None
) -> Comparison:
    """Judges every case by both. They take turns in blocks, and in who goes first, so that noise hits both alike.

    Each case starts from its task's definition; neither side keeps anything from one case to the next. advance: told
    the number of cases of each block done.
    """
    sides = _Sides(tasks)
    ours: list[int | None] = []
    reference: list[int | None] = []
    seconds = [0.0, 0.0]
    for number, start in enumerate(range(0, len(cases), BLOCK)):
        block = cases[start : start + BLOCK]
        for side in (0, 1) if number % 2 else (1, 0):
            began = time.thread_time()
            verdicts = sides.reference(block) if side else sides.ours(block)
            seconds[side] += time.thread_time() - began
            (reference if side else ours).extend(verdicts)
        sides.forget()
        advance(len(block))
    differing = tuple(
        Disagreement(case.index, tasks[case.position].task, case.kind.value, mine, theirs)
        for case, mine, theirs in zip(cases, ours, reference, strict=True)
        if mine != theirs
    )
    return Comparison(len(cases), reference.count(None), differing, seconds[0], seconds[1])


class _Sides:
    """Both judges over the same tasks. What the checker wants in another form is prepared before the clock runs."""

    def __init__(self, tasks: Sequence[TaskDefinition]) -> None:
        self._tasks = tasks
        self._source = BfclSource()
        self._checker = ReferenceChecker()
        self._entries = [self._checker.entry(task) for task in tasks]
        self._truths = [[list(turn.ground_truth) for turn in task.turns] for task in tasks]
        self.forget = self._checker.forget

    def ours(self, cases: Sequence[Case]) -> list[int | None]:
        return [self._own_verdict(self._tasks[case.position], case) for case in cases]

    def reference(self, cases: Sequence[Case]) -> list[int | None]:
        return [self._checker_verdict(case) for case in cases]

    def _own_verdict(self, task: TaskDefinition, case: Case) -> int | None:
        verdicts = score(self._source.reset(task), task.turns_total, case.turns)
        return None if all(verdicts) else verdicts.index(False)

    def _checker_verdict(self, case: Case) -> int | None:
        entry, truth = self._entries[case.position], self._truths[case.position]
        return failed_turn(self._checker.verdict(entry, truth, case.turns, f"case_{case.index}"))
