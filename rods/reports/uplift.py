"""The difference of progress between two measurements of the same tasks, and how sure that is. Pure.

Paired by task: the difficulty of a task is in both of its measurements and cancels. The standard error is that of the
mean difference, s / sqrt(n) with the sample deviation s of the differences.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

TaskProgress = Mapping[str, Fraction]
"""Task to its mean progress, exact."""


@dataclass(frozen=True, slots=True)
class Uplift:
    """Mean progress of `tasks` tasks, measured in both epochs. error: the uplift's standard error."""

    name: str
    tasks: int
    first_epoch: int
    last_epoch: int
    first: float
    last: float
    rise: float
    error: float

    @property
    def errors(self) -> float | None:
        """The uplift in standard errors; None where there is no spread to judge it by."""
        return self.rise / self.error if self.error else None


def paired_uplift(
    name: str, first_epoch: int, first: TaskProgress, last_epoch: int, last: TaskProgress
) -> Uplift | None:
    """The uplift over the tasks that both hold; None for fewer than two."""
    tasks = sorted(first.keys() & last.keys())
    if len(tasks) < 2:
        return None
    differences = [last[task] - first[task] for task in tasks]
    return Uplift(
        name=name,
        tasks=len(tasks),
        first_epoch=first_epoch,
        last_epoch=last_epoch,
        first=float(mean([first[task] for task in tasks])),
        last=float(mean([last[task] for task in tasks])),
        rise=float(mean(differences)),
        error=sqrt(_variance(differences) / len(tasks)),
    )


def mean(values: list[Fraction]) -> Fraction:
    """Exact, so that no order of the values changes it. Raises ZeroDivisionError for none."""
    return sum(values, Fraction(0)) / len(values)


def _variance(values: list[Fraction]) -> Fraction:
    middle = mean(values)
    return sum([(value - middle) ** 2 for value in values], Fraction(0)) / (len(values) - 1)
