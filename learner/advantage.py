"""Group advantages from progress rewards, without torch.

Only live attempts count: a failed slot (None) moves neither the mean nor the deviation, since an infrastructure
failure says nothing about the policy. A group whose live attempts all passed equally many turns has no gradient;
whether that is so is decided on integers, because a deviation of equal floats is often a little above zero.
"""

from collections.abc import Sequence
from math import sqrt

DEVIATION_FLOOR = 1e-6


def has_variance(turns_passed: Sequence[int | None]) -> bool:
    """Whether at least two live attempts of the group differ."""
    return len({passed for passed in turns_passed if passed is not None}) > 1


def group_advantages(turns_passed: Sequence[int | None], turns_total: int) -> tuple[float | None, ...]:
    """One advantage per slot, (r - mean) / (deviation + floor) with r = turns passed / turns in total.

    turns_passed: one entry per slot, None for a failed slot. A failed slot has no advantage, and no slot of a group
    without variance has one: such a group is counted by the caller and not trained on. The deviation is that of the
    live attempts as a population.
    """
    if turns_total < 1 or any(passed is not None and not 0 <= passed <= turns_total for passed in turns_passed):
        raise ValueError(f"turns passed must lie between 0 and turns_total, which is {turns_total}")
    if not has_variance(turns_passed):
        return (None,) * len(turns_passed)
    live = [passed for passed in turns_passed if passed is not None]
    total, squares = sum(live), sum(passed * passed for passed in live)
    mean = total / (len(live) * turns_total)
    deviation = sqrt(len(live) * squares - total * total) / (len(live) * turns_total)
    return tuple(
        None if passed is None else (passed / turns_total - mean) / (deviation + DEVIATION_FLOOR)
        for passed in turns_passed
    )
