import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.in_flight import MAX_GROUPS_PER_STEP, InFlight
from schemas.rules import LearnerRules, Rules


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.booleans(), st.integers(1, 6), st.integers(0, MAX_GROUPS_PER_STEP + 3)), max_size=30),
)
def test_the_bound_holds_whatever_is_asked_for(steps: int, moves: list[tuple[bool, int, int]]) -> None:
    in_flight = InFlight(steps, 1)
    for opens, step, groups in moves:
        if not opens:
            in_flight.sealed(step)
            continue
        before = dict(in_flight.open_steps)
        try:
            in_flight.open(step, groups)
        except RuntimeError:
            assert in_flight.open_steps == before
        assert len(in_flight.open_steps) <= steps
        assert in_flight.groups <= steps * MAX_GROUPS_PER_STEP


def test_a_sealed_step_makes_room() -> None:
    in_flight = InFlight(1, 1)
    in_flight.open(1, 5)
    with pytest.raises(RuntimeError, match="step 2 would exceed 1 steps in flight"):
        in_flight.open(2, 1)
    in_flight.sealed(1)
    in_flight.open(2, 7)
    assert in_flight.groups == 7


def test_a_step_of_too_many_groups_is_refused() -> None:
    with pytest.raises(RuntimeError, match="more than 2048"):
        InFlight(1, 1).open(1, MAX_GROUPS_PER_STEP + 1)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 5))
def test_what_is_too_old_or_from_the_future_is_never_fresh(sampled: int, current: int, bound: int) -> None:
    in_flight = InFlight.under(Rules(learner=LearnerRules(max_staleness=bound)))
    assert in_flight.fresh(sampled, current) == (sampled <= current <= sampled + bound)
