"""The sentence for a setting that is invalid: its name, what it must be, and what was given."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

_LONGEST = 80
_SECRET = "password"  # noqa: S105 - a name, not a password
_MUST: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda limits: f"be at least {limits['ge']}",
    "greater_than": lambda limits: f"be above {limits['gt']}",
    "less_than_equal": lambda limits: f"be at most {limits['le']}",
    "less_than": lambda limits: f"be below {limits['lt']}",
    "string_too_short": lambda limits: f"have at least {limits['min_length']} characters",
    "string_too_long": lambda limits: f"have at most {limits['max_length']} characters",
    "string_pattern_mismatch": lambda limits: f"match {limits['pattern']}",
    "literal_error": lambda limits: f"be {limits['expected']}",
    "enum": lambda limits: f"be {limits['expected']}",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float", "int_parsing_size"), lambda _: "be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), lambda _: "be a number"),
    **dict.fromkeys(("decimal_parsing", "decimal_type"), lambda _: "be a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), lambda _: "be true or false"),
    "string_type": lambda _: "be a text",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), lambda _: "be a group of settings"),
}


def wrong_setting(error: ValidationError) -> str:
    """The first invalid setting of several, without a full stop."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
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
