from hypothesis import given
from hypothesis import strategies as st

from streams.measure.grown import Grown


def grown(*pairs: tuple[str, int]) -> Grown[str, int]:
    value: Grown[str, int] = Grown()
    for key, number in pairs:
        value = value.adding(key, number)
    return value


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=30))
def test_every_version_is_the_dict_it_was_made_as_whatever_grew_from_it_later(grafts: list[tuple[int, int]]) -> None:
    """Each graft picks any version so far and adds a key that it does not hold."""
    versions: list[tuple[Grown[int, int], dict[int, int]]] = [(Grown(), {})]
    for pick, number in grafts:
        value, plain = versions[pick % len(versions)]
        key = next(key for key in range(100) if key not in plain and (key + number) % 3)
        versions.append((value.adding(key, number), {**plain, key: number}))
    for value, plain in versions:
        assert dict(value) == plain and len(value) == len(plain) and list(value) == list(plain)
        assert value == plain and [key for key in range(100) if key in value] == sorted(plain)


def test_an_older_version_does_not_see_what_a_newer_one_holds() -> None:
    old = grown(("a", 1))
    new = old.adding("b", 2)
    assert "b" not in old and old.get("b") is None and new["b"] == 2
    assert old.adding("b", 3)["b"] == 3 and new["b"] == 2
