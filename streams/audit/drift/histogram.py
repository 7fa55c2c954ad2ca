"""How far a distribution has moved from another: the population stability index and the Jensen-Shannon distance. Pure.

Both over the same bins, and with half a count added to each bin, so that an empty bin has a finite weight:
PSI = Σ (p − q) ln(p / q); the distance is the square root of the divergence in bits, 0 for equal distributions, at
most 1.
"""

from collections.abc import Sequence
from math import log, log2, sqrt

BINS = 10
SMOOTHING = 0.5


def psi(counts: Sequence[int], reference: Sequence[int]) -> float:
    """The population stability index; conventionally 0.1 is a shift to look at, and 0.25 one to act on."""
    return sum((p - q) * log(p / q) for p, q in zip(_shares(counts), _shares(reference), strict=True))


def jensen_shannon(counts: Sequence[int], reference: Sequence[int]) -> float:
    """The Jensen-Shannon distance, base 2."""
    p, q = _shares(counts), _shares(reference)
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return sqrt(max(0.0, (_divergence(p, middle) + _divergence(q, middle)) / 2))


def _divergence(p: Sequence[float], q: Sequence[float]) -> float:
    return sum(a * log2(a / b) for a, b in zip(p, q, strict=True))


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts) + SMOOTHING * len(counts)
    return [(count + SMOOTHING) / total for count in counts]
