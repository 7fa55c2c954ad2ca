"""A setting that does not validate, told in one sentence: its name, what it must be, and what was given."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

_LONGEST = 80
_SECRET = "password"  # noqa: S105 - a name, not a password
_WHOLE, _NUMBER, _GROUP = "be a whole number", "be a number", "be a group of settings"
_MUST: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda told: f"be at least {told['ge']}",
    "greater_than": lambda told: f"be above {told['gt']}",
    "less_than_equal": lambda told: f"be at most {told['le']}",
    "less_than": lambda told: f"be below {told['lt']}",
    "string_too_short": lambda told: f"have at least {told['min_length']} characters",
    "string_too_long": lambda told: f"have at most {told['max_length']} characters",
    "string_pattern_mismatch": lambda told: f"match {told['pattern']}",
    "literal_error": lambda told: f"be {told['expected']}",
    "enum": lambda told: f"be {told['expected']}",
    "int_parsing": lambda _: _WHOLE,
    "int_type": lambda _: _WHOLE,
    "int_from_float": lambda _: _WHOLE,
    "int_parsing_size": lambda _: _WHOLE,
    "float_parsing": lambda _: _NUMBER,
    "float_type": lambda _: _NUMBER,
    "finite_number": lambda _: _NUMBER,
    "decimal_parsing": lambda _: _NUMBER,
    "decimal_type": lambda _: _NUMBER,
    "bool_parsing": lambda _: "be true or false",
    "bool_type": lambda _: "be true or false",
    "string_type": lambda _: "be a text",
    "model_type": lambda _: _GROUP,
    "model_attributes_type": lambda _: _GROUP,
    "dict_type": lambda _: _GROUP,
}


def name_of(error: ValidationError) -> str:
    """The first wrong setting's name, with dots; empty where the settings are wrong as a whole."""
    return ".".join(str(part) for part in error.errors()[0]["loc"])


def wrong_setting(error: ValidationError) -> str:
    """The first wrong setting of several, without a full stop."""
    first = error.errors()[0]
    name = name_of(error)
    of = f"the setting {name}" if name else "the settings"
    if first["type"] == "value_error":
        return f"{of}: {first['msg'].removeprefix('Value error, ')}"
    must = _MUST.get(first["type"])
    if must is None:
        return f"{of} cannot be {_shown(name, first['input'])}: {first['msg'].lower()}"
    return f"{of} must {must(first.get('ctx', {}))}, not {_shown(name, first['input'])}"


def _shown(name: str, value: Any) -> str:
    """The value as it was given, unless it is a secret or a table."""
    if name.endswith(_SECRET):
        return "what was given"
    if isinstance(value, Mapping):
        return "a group of settings"
    text = str(value) if str(value).isprintable() else ascii(value)
    return repr(text[:_LONGEST]) if isinstance(value, str) else text[:_LONGEST]
