from statistics import fmean, pstdev

import pytest

from learner.advantage import group_advantages, has_variance


def test_advantages_are_standardised_progress() -> None:
    values = group_advantages([0, 1, 2, 3], 3)
    live = [value for value in values if value is not None]
    assert fmean(live) == pytest.approx(0.0, abs=1e-12)
    assert pstdev(live) == pytest.approx(1.0, abs=1e-4)
    assert live == sorted(live)


def test_a_failed_slot_has_no_advantage_and_moves_no_other() -> None:
    with_failure = group_advantages([0, None, 2, None], 2)
    assert with_failure[1] is None and with_failure[3] is None
    assert (with_failure[0], with_failure[2]) == group_advantages([0, 2], 2)


def test_a_failed_slot_is_not_a_zero() -> None:
    assert group_advantages([1, 1, None], 2) == (None, None, None)
    assert group_advantages([1, 1, 0], 2)[2] is not None


@pytest.mark.parametrize("passed", [0, 1, 3, 7])
@pytest.mark.parametrize("k", [1, 2, 16, 17])
def test_equal_attempts_have_no_variance_whatever_floats_say(passed: int, k: int) -> None:
    assert not has_variance([passed] * k)
    assert group_advantages([passed] * k, 7) == (None,) * k


def test_a_group_of_failures_has_no_variance() -> None:
    assert not has_variance([None, None])
    assert not has_variance([])
    assert not has_variance([None, 3])


def test_impossible_values_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and"):
        group_advantages([0, 4], 3)
