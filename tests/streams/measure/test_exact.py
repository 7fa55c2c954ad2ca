from decimal import Decimal
from fractions import Fraction
from statistics import variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.seals import WindowGroup
from streams.measure.exact import above, below, mean_of, moments, parse, phi_of, pooled, shown, text_of, variance_of

CONSTANT = [(turns, passed) for turns in range(2, 8) for passed in range(turns + 1)]


def window_of(*groups: tuple[list[int], int]) -> tuple[WindowGroup, ...]:
    return tuple(WindowGroup(str(index), *moments(passed, total)) for index, (passed, total) in enumerate(groups))


def test_there_are_33_constant_vectors_with_2_to_7_turns() -> None:
    assert len(CONSTANT) == 33


def test_a_constant_vector_has_variance_exactly_zero() -> None:
    vectors = [(turns, passed, k) for turns, passed in CONSTANT for k in (2, 3, 16, 17, 1024)]
    assert [(turns, passed, k) for turns, passed, k in vectors if moments([passed] * k, turns).variance != 0] == []


@given(st.integers(1, 9).flatmap(lambda t: st.tuples(st.just(t), st.lists(st.integers(0, t), min_size=2, max_size=40))))
def test_moments_agree_with_the_definition_over_fractions(drawn: tuple[int, list[int]]) -> None:
    total, passed = drawn
    progress = [Fraction(p, total) for p in passed]
    found = moments(passed, total)
    assert found.mean == sum(progress, Fraction(0)) / len(progress)
    assert found.variance == variance(progress)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=1, max_size=5))
def test_a_window_pools_its_slots_as_one_sample(groups: list[list[int]]) -> None:
    window = window_of(*[(passed, 5) for passed in groups])
    assert pooled(window) == moments([p for passed in groups for p in passed], 5)


def test_a_window_of_different_totals_is_still_exact() -> None:
    window = window_of(([1, 2], 2), ([1, 3], 3))
    progress = [Fraction(1, 2), Fraction(1), Fraction(1, 3), Fraction(1)]
    assert mean_of(window) == sum(progress, Fraction(0)) / 4
    assert variance_of(window) == variance(progress)


def test_one_value_shows_no_spread() -> None:
    assert moments([1], 2).variance == 0


def test_phi_is_one_at_a_half_and_zero_at_the_ends() -> None:
    assert [phi_of(Fraction(r)) for r in (Fraction(1, 2), Fraction(0), Fraction(1))] == [1, 0, 0]


def test_thresholds_are_compared_exactly() -> None:
    fifth = Fraction(1, 5)
    assert not above(fifth, Decimal("0.20")) and not below(fifth, Decimal("0.20"))
    assert above(fifth + Fraction(1, 10**30), Decimal("0.20"))
    assert below(fifth - Fraction(1, 10**30), Decimal("0.20"))


@given(st.fractions())
def test_text_round_trips(value: Fraction) -> None:
    assert parse(text_of(value)) == value


@pytest.mark.parametrize("text", ["", "1", "1/0", "a/2", "1/-2", "1/2/3", "1.5/2", " 1/2", "٣/٤", "--1/2"])
def test_other_texts_are_no_rationals(text: str) -> None:
    with pytest.raises(ValueError, match="not a rational"):
        parse(text)


def test_shown_is_the_nearest_float() -> None:
    assert shown(Fraction(1, 3)) == 1 / 3


GROUPS = st.integers(1, 9).flatmap(
    lambda t: st.tuples(st.just(t), st.lists(st.integers(0, t), min_size=1, max_size=40))
)
THRESHOLDS = st.decimals(0, 1, places=3)


@given(GROUPS)
def test_the_floats_shown_are_those_of_the_fractions(drawn: tuple[int, list[int]]) -> None:
    found = moments(drawn[1], drawn[0])
    assert found.shown == (shown(found.mean), shown(phi_of(found.mean)), shown(found.variance))


@given(GROUPS, THRESHOLDS)
def test_moments_compare_as_their_fractions_do(drawn: tuple[int, list[int]], threshold: Decimal) -> None:
    found = moments(drawn[1], drawn[0])
    assert found.above(threshold) == above(found.mean, threshold)
    assert found.below(threshold) == below(found.mean, threshold)
    assert found.varies_above(threshold) == above(found.variance, threshold)


def test_moments_at_a_threshold_are_on_neither_side() -> None:
    found = moments([1, 4, 4, 4, 4], 4)
    assert (
        found.mean == Fraction(Decimal("0.85"))
        and not found.above(Decimal("0.85"))
        and not found.below(Decimal("0.85"))
    )
