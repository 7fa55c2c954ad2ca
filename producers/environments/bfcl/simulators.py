"""Simulators of one attempt: built from an initial state, called by name, never shared."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache
from types import FunctionType, MethodType
from typing import Any

from producers.environments.bfcl.package import simulator_class
from producers.environments.calls import Call
from producers.environments.errors import CallError, EnvironmentFault

_STATELESS = frozenset({"MathAPI"})
_BORROWED = {"TravelAPI": ("credit_card_list", "booking_record")}
"""Attributes in which a long-context scenario holds records of a table shared by the whole process."""

_POWER_BITS = 65_536
_DIGITS = 2_000
_COPIES = 12


class Simulators:
    """The objects one side of an attempt acts on: the model's, or the ground truth's."""

    __slots__ = ("_copies", "objects")

    def __init__(self, classes: tuple[type[Any], ...], initial_state: str, long_context: bool) -> None:
        """Builds one object per class. initial_state: JSON, class name to configuration. Raises EnvironmentFault."""
        self._copies = 0
        try:
            states = json.loads(initial_state)
            self.objects = [_build(kind, states.get(kind.__name__, {}), long_context) for kind in classes]
        except Exception as error:
            raise EnvironmentFault(f"the initial state cannot be loaded: {error}") from error

    def method(self, name: str) -> MethodType | None:
        """The public method of that name, of the last class that has one, as the package resolves it; or None."""
        if name[0] == "_":
            return None
        for item in reversed(self.objects):
            found = getattr(type(item), name, None)
            if type(found) is FunctionType:
                return MethodType(found, item)
        return None

    def run(self, call: Call) -> tuple[str, bool]:
        """Runs one call: its result as text, and whether it did what it was asked. Exceptions become text."""
        try:
            result = self._invoke(call)
            return result_text(result), _succeeded(result)
        except Exception as error:  # noqa: BLE001 - whatever a simulator raises is an answer to the model
            return f"Error during execution: {error}", False

    def replay(self, calls: Iterable[Call]) -> None:
        """Runs calls for their effects alone."""
        for call in calls:
            with suppress(Exception):
                self._invoke(call)

    def _invoke(self, call: Call) -> object:
        method = self.method(call.name)
        if method is None:
            raise CallError(f"name '{call.name}' is not defined")
        if call.name in _GUARDED:
            self._guard(call, method)
        kwargs = {name: value if type(value) in _ATOMS else own(value) for name, value in call.kwargs}
        return method(*map(own, call.args), **kwargs) if call.args else method(**kwargs)

    def _guard(self, call: Call, method: MethodType) -> None:
        """Refuses arguments that would keep a simulator busy or growing without bound. Raises CallError."""
        if call.name == "cp":
            self._copies += 1
            if self._copies > _COPIES:
                raise CallError(f"cp may be called at most {_COPIES} times")
            return
        arguments = call.bound(inspect.signature(method))
        if call.name == "power":
            _guard_power(arguments.get("base"), arguments.get("exponent"))
        for name in ("precision", "decimal_places"):
            value = arguments.get(name)
            if isinstance(value, int) and abs(value) > _DIGITS:
                raise CallError(f"{name} may be at most {_DIGITS}")


_GUARDED = frozenset({"cp", "power", "logarithm", "square_root", "round_number"})


_encode = json.JSONEncoder().encode


def result_text(result: object) -> str:
    """A result as the package writes it: text as it is, a dict as JSON where it can be, anything else by `str`."""
    if type(result) is str:
        return result
    if type(result) is dict:
        try:
            return _encode(result)
        except Exception:  # noqa: BLE001 - the package falls back to str for whatever JSON refuses
            return str(result)
    return str(result)


def own(value: Any) -> Any:
    """A deep copy, by hand for what JSON can hold, since that is many times faster than `copy.deepcopy`."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {key: item if type(item) in _ATOMS else own(item) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in _ATOMS else own(item) for item in value]
    return set(value) if kind is set else deepcopy(value)


_ATOMS = frozenset({str, int, float, bool, type(None)})


def _build(kind: type[Any], state: Mapping[str, Any], long_context: bool) -> Any:
    simulator = kind()
    name = kind.__name__
    if name not in _STATELESS:
        _loader(name)(simulator, state, long_context=long_context)
        if long_context and name in _BORROWED:
            for attribute in _BORROWED[name]:
                setattr(simulator, attribute, own(getattr(simulator, attribute)))
    return simulator


@cache
def _loader(name: str) -> Callable[..., None]:
    """The class's own `_load_scenario`, with `own` where it copies its default state, which is most of its time."""
    load: FunctionType = simulator_class(name).__dict__["_load_scenario"]
    return FunctionType(load.__code__, {**load.__globals__, "deepcopy": own}, load.__name__, load.__defaults__)


def _succeeded(result: object) -> bool:
    if type(result) is dict:
        return "error" not in result
    return not (type(result) is list and len(result) == 1 and str(result[0]).startswith("Error"))


def _guard_power(base: object, exponent: object) -> None:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > _POWER_BITS:
        raise CallError("the power is too large")
