"""Φ and the distance between structures."""

from fractions import Fraction

from producers.environments.calls import Call, parse_call
from producers.synthesis.profile import Profile, distance, parsed, profile


def shape(turns: list[list[str]], results: list[object], category: str = "base") -> Profile:
    return profile([[parse_call(text) for text in turn] for turn in turns], results, category)


def test_a_result_that_holds_an_argument_feeds_it() -> None:
    found = shape([["who(name='Ann')", "send(to='U7', text='hello')"]], [{"id": "U7"}, {}])
    assert found.edges == ((0, 1, True),)
    assert found.flow == (2, 0, 1)
    assert (found.depth, found.topology) == (2, "chain")


def test_the_latest_call_that_took_the_same_value_shares_it() -> None:
    found = shape([["touch(file='a.txt')"], ["write(file='a.txt', text='hello')"]], [None, None])
    assert found.edges == ((0, 1, False),)
    assert found.coreference == 1


def test_two_sources_of_one_call_make_a_fan_in_and_two_targets_of_one_a_fan_out() -> None:
    inward = shape([["zip(city='X')", "zip(city='Y')", "far(a='11', b='22')"]], [{"z": "11"}, {"z": "22"}, {}])
    outward = shape([["make(name='n1')", "show(name='n1', how=3)", "drop(id='R5')"]], [{"id": "R5"}, {}, {}])
    assert inward.topology == "fan_in"
    assert outward.topology == "fan_out"


def test_turns_without_calls_are_no_part_of_a_structure() -> None:
    assert shape([["f(a=2)"], [], ["g(b=3)"]], [1, 2]).calls == (1, 1)


def test_whole_floats_and_integers_are_the_same_value() -> None:
    assert shape([["f(a='x1')", "g(amount=40)"]], [{"gallons": 40.0}, {}]).edges == ((0, 1, True),)


def test_the_distance_is_zero_for_equal_structures_symmetric_and_at_most_one() -> None:
    shapes = [
        shape([["f(a='u1')"]], [{}]),
        shape([["f(a='u1')", "g(a='u1')"], ["h()"]], [{}, {}, {}]),
        shape([["f(a='u1')"] * 3, ["g(b='u2')"] * 4], [{}] * 7),
    ]
    for left in shapes:
        assert distance(left, left) == 0
        for right in shapes:
            assert distance(left, right) == distance(right, left)
            assert 0 <= distance(left, right) <= 1


def test_another_category_is_as_far_as_can_be() -> None:
    assert distance(shape([["f()"]], [{}]), shape([["f()"]], [{}], "miss_func")) == Fraction(1)


def test_results_are_read_as_json_or_as_a_workbench_name() -> None:
    assert parsed('{"a": 1}') == {"a": 1}
    assert parsed("'paris'") == "paris"
    assert parsed("40") == 40
    assert parsed("'a' 'b'") == "'a' 'b'"


def test_a_call_of_no_arguments_has_no_edges() -> None:
    assert profile([[Call("ls"), Call("pwd")]], [["a"], "b"], "base").topology == "none"
