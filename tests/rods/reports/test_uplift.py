from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rods.reports.uplift import paired_uplift

SHARES = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.fractions(0, 1, max_denominator=64), min_size=2)


def test_the_error_is_that_of_the_mean_difference() -> None:
    first = {"a": Fraction(0), "b": Fraction(1, 2), "c": Fraction(1, 4)}
    last = {"a": Fraction(1, 2), "b": Fraction(1, 2), "c": Fraction(1)}
    uplift = paired_uplift("r", 1, first, 5, last)
    assert uplift is not None
    assert uplift.rise == pytest.approx(1.25 / 3)
    assert uplift.error == pytest.approx(0.3818813 / 3**0.5)
    assert uplift.errors == pytest.approx(uplift.rise / uplift.error)


@given(SHARES)
def test_nothing_rises_from_a_measurement_to_itself(progress: dict[str, Fraction]) -> None:
    uplift = paired_uplift("r", 1, progress, 1, progress)
    assert uplift is not None
    assert (uplift.rise, uplift.error, uplift.errors) == (0.0, 0.0, None)


@given(SHARES, SHARES)
def test_only_tasks_in_both_count_and_turning_the_pair_turns_the_sign(
    first: dict[str, Fraction], last: dict[str, Fraction]
) -> None:
    forth, back = paired_uplift("r", 1, first, 2, last), paired_uplift("r", 2, last, 1, first)
    if len(first.keys() & last.keys()) < 2:
        assert forth is None
        return
    assert forth is not None
    assert back is not None
    assert forth.tasks == len(first.keys() & last.keys())
    assert (back.rise, back.error) == (-forth.rise, forth.error)
