"""Rewards as rationals: mean, φ and sample variance of progress, exact, compared exactly with decimal thresholds.

Folds keep integers: n live slots, Σp and Σp² of their passed turns, T turns in total. A float sum of 16 equal rewards
shows a variance above zero for half of the constant vectors; integers never do. `shown` makes the float for people.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import NamedTuple

from schemas.seals import WindowGroup


class Moments(NamedTuple):
    """n values p/T in integers: Σp, Σp² and T."""

    n: int
    sum_passed: int
    sum_squares: int
    turns_total: int

    @property
    def mean(self) -> Fraction:
        """Mean progress. Raises ZeroDivisionError where nothing is live."""
        return Fraction(self.sum_passed, self.n * self.turns_total)

    @property
    def variance(self) -> Fraction:
        """Sample variance of progress; 0 for fewer than two values, which show no spread."""
        if self.n < 2:
            return Fraction(0)
        spread = self.n * self.sum_squares - self.sum_passed * self.sum_passed
        return Fraction(spread, self.n * (self.n - 1) * self.turns_total * self.turns_total)

    def above(self, threshold: Decimal) -> bool:
        """Whether the mean is above a threshold, exactly; as `above`, without making the fraction."""
        numerator, denominator = _ratio(threshold)
        return self.sum_passed * denominator > numerator * self.n * self.turns_total

    def below(self, threshold: Decimal) -> bool:
        """Whether the mean is below a threshold, exactly."""
        numerator, denominator = _ratio(threshold)
        return self.sum_passed * denominator < numerator * self.n * self.turns_total

    def varies_above(self, threshold: Decimal) -> bool:
        """Whether the sample variance is above a threshold, exactly."""
        if self.n < 2:
            return threshold < 0
        numerator, denominator = _ratio(threshold)
        spread = self.n * self.sum_squares - self.sum_passed * self.sum_passed
        return spread * denominator > numerator * self.n * (self.n - 1) * self.turns_total * self.turns_total

    @property
    def shown(self) -> "Shown":
        """The nearest floats of mean, φ and sample variance: each one division of integers, which rounds correctly
        whether in lowest terms or not."""
        whole = self.n * self.turns_total
        mean, phi = self.sum_passed / whole, 4 * self.sum_passed * (whole - self.sum_passed) / (whole * whole)
        if self.n < 2:
            return Shown(mean, phi, 0.0)
        spread = self.n * self.sum_squares - self.sum_passed * self.sum_passed
        return Shown(mean, phi, spread / (whole * self.turns_total * (self.n - 1)))


class Shown(NamedTuple):
    """What people see of a group with at least one live slot."""

    mean: float
    phi: float
    variance: float


@lru_cache(maxsize=64)
def _ratio(threshold: Decimal) -> tuple[int, int]:
    return threshold.as_integer_ratio()


def moments(passed: Sequence[int], turns_total: int) -> Moments:
    """The moments of a group's live slots."""
    return Moments(len(passed), sum(passed), sum([turns * turns for turns in passed]), turns_total)


def pooled(window: Sequence[WindowGroup]) -> Moments:
    """The moments of all slots of a window as one sample. Groups of different totals meet on a common denominator."""
    if len(window) == 1:
        group = window[0]
        return Moments(group.n, group.sum_passed, group.sum_squares, group.turns_total)
    if len({group.turns_total for group in window}) == 1:
        sums = (sum([group.n for group in window]), sum([group.sum_passed for group in window]))
        return Moments(*sums, sum([group.sum_squares for group in window]), window[0].turns_total)
    total = lcm(*(group.turns_total for group in window))
    scales = [total // group.turns_total for group in window]
    return Moments(
        sum(group.n for group in window),
        sum(group.sum_passed * scale for group, scale in zip(window, scales, strict=True)),
        sum(group.sum_squares * scale * scale for group, scale in zip(window, scales, strict=True)),
        total,
    )


def mean_of(window: Sequence[WindowGroup]) -> Fraction:
    """Mean progress over a window with at least one live slot."""
    return pooled(window).mean


def variance_of(window: Sequence[WindowGroup]) -> Fraction:
    """Sample variance of progress over a window."""
    return pooled(window).variance


def phi_of(mean: Fraction) -> Fraction:
    """φ = 4r(1-r): 1 at one half, 0 at both ends (arXiv 2606.19047)."""
    return 4 * mean * (1 - mean)


def above(value: Fraction, threshold: Decimal) -> bool:
    """Whether value > threshold, exactly."""
    numerator, denominator = _ratio(threshold)
    return value.numerator * denominator > numerator * value.denominator


def below(value: Fraction, threshold: Decimal) -> bool:
    """Whether value < threshold, exactly."""
    numerator, denominator = _ratio(threshold)
    return value.numerator * denominator < numerator * value.denominator


def text_of(value: Fraction) -> str:
    """``numerator/denominator`` in lowest terms, also for integers."""
    return f"{value.numerator}/{value.denominator}"


def parse(text: str) -> Fraction:
    """The rational that `text_of` wrote. Raises ValueError for any other text."""
    numerator, slash, denominator = text.partition("/")
    if slash and _is_integer(numerator.removeprefix("-")) and _is_integer(denominator) and int(denominator):
        return Fraction(int(numerator), int(denominator))
    raise ValueError(f"not a rational of the form numerator/denominator: {text[:40]!r}")


def shown(value: Fraction) -> float:
    """The nearest float, by one division."""
    return value.numerator / value.denominator


def _is_integer(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 1000
