"""Hypothesis strategies for events, from their type hints."""

import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from schemas.catalogue import EVENT_TYPES

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=12),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value that the schema of this type can hold."""
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return st.builds(hint, **{field.name: values(hints[field.name]) for field in fields(hint)})
    if get_origin(hint) in (Union, types.UnionType):
        return st.none() | values(next(arg for arg in get_args(hint) if arg is not type(None)))
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is dict:
        return st.dictionaries(_PLAIN[str], values(get_args(hint)[1]), max_size=3)
    return _PLAIN[hint]


def events() -> st.SearchStrategy[Any]:
    """An event of any type."""
    return st.sampled_from(EVENT_TYPES).flatmap(values)
