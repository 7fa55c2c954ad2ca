"""Calls in source form, such as ``cd(folder='a')``, read without running them.

Model text is hostile. It is measured first, then parsed by `ast` and never compiled; of the tree only a call of one
plain public name with literal arguments passes: strings, finite-size numbers, booleans, None, and lists, tuples and
dicts of them. Whatever else Python can say (attributes, nested calls, operators, comprehensions, f-strings, lambdas,
starred arguments) is a `CallError` of one sentence.
"""

import ast
import inspect
import math
from dataclasses import dataclass
from typing import TypeAlias

from producers.environments.errors import CallError

Value: TypeAlias = "str | int | float | bool | list[Value] | tuple[Value, ...] | dict[Value, Value] | None"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds on one call. text: characters, checked before parsing. depth: nested containers. nodes: literals in all.

    string: characters of one string. int_bits: bits of one integer.
    """

    text: int = 20_000
    depth: int = 16
    nodes: int = 1_000
    string: int = 10_000
    int_bits: int = 128


DEFAULT_LIMITS = CallLimits()


@dataclass(frozen=True, slots=True)
class Call:
    """A call that passed: a public name and literal arguments in the order written. Values are fresh per parse."""

    name: str
    args: tuple[Value, ...] = ()
    kwargs: tuple[tuple[str, Value], ...] = ()

    def text(self) -> str:
        """The canonical source form; `parse_call` of it gives an equal call."""
        parts = [render(value) for value in self.args]
        parts += [f"{name}={render(value)}" for name, value in self.kwargs]
        return f"{self.name}({', '.join(parts)})"

    def bound(self, signature: inspect.Signature) -> dict[str, Value]:
        """The arguments by parameter name, as Python would bind them (defaults left out). Raises CallError."""
        try:
            return dict(signature.bind(*self.args, **dict(self.kwargs)).arguments)
        except TypeError as error:
            raise CallError(f"{self.name}: {error}") from None


def parse_call(text: str, limits: CallLimits = DEFAULT_LIMITS) -> Call:
    """Reads one call. Raises CallError, and nothing else, for any other text."""
    return _Reader(limits).call(_tree(text, limits))


def render(value: Value) -> str:
    """A literal in source form. Infinities, which have no literal of their own, are written as 1e999."""
    kind = type(value)
    if kind is float and math.isinf(value):  # type: ignore[arg-type]
        return "1e999" if value > 0 else "-1e999"  # type: ignore[operator]
    if isinstance(value, list):
        return f"[{', '.join(map(render, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(render, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{render(key)}: {render(item)}" for key, item in value.items()) + "}"
    return repr(value)


def _tree(text: str, limits: CallLimits) -> ast.expr:
    if len(text) > limits.text:
        raise CallError(f"a call of {len(text)} characters is longer than the {limits.text} allowed")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError):
        raise CallError("the text is not a call such as name(argument='value')") from None


class _Reader:
    """Turns one tree into a Call, counting literals against the limits."""

    __slots__ = ("left", "limits")

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self.left = limits.nodes

    def call(self, node: ast.expr) -> Call:
        if type(node) is not ast.Call:
            raise CallError("the text is not a call such as name(argument='value')")
        func = node.func
        if type(func) is not ast.Name:
            raise CallError("only plain function names can be called")
        if func.id[0] == "_":
            raise CallError(f"{func.id[:80]} is private and cannot be called")
        value = self.value
        args = tuple([value(item, 0) for item in node.args]) if node.args else ()
        kwargs = tuple([(self.keyword(item.arg), value(item.value, 0)) for item in node.keywords])
        if len(kwargs) > 1 and len({name for name, _ in kwargs}) < len(kwargs):
            raise CallError("an argument is given twice")
        return Call(func.id, args, kwargs)

    def keyword(self, name: str | None) -> str:
        if name is None:
            raise CallError("starred arguments are not allowed")
        if name[0] == "_":
            raise CallError(f"{name[:80]} is private and cannot be an argument")
        return name

    def value(self, node: ast.expr, depth: int) -> Value:
        self.left -= 1
        if self.left < 0:
            raise CallError(f"a call may hold at most {self.limits.nodes} values")
        if type(node) is ast.Constant:
            return self.constant(node.value)
        if depth >= self.limits.depth:
            raise CallError(f"values may be nested at most {self.limits.depth} deep")
        if type(node) is ast.List:
            return [self.value(item, depth + 1) for item in node.elts]
        if type(node) is ast.Tuple:
            return tuple([self.value(item, depth + 1) for item in node.elts])
        if type(node) is ast.Dict:
            return self.mapping(node, depth + 1)
        if type(node) is ast.UnaryOp:
            return self.signed(node)
        raise CallError(f"{type(node).__name__} is not a literal value")

    def constant(self, value: object) -> Value:
        kind = type(value)
        if kind is str:
            if len(value) <= self.limits.string and value.isascii():  # type: ignore[arg-type,attr-defined]
                return value  # type: ignore[return-value]
            return self.string(value)  # type: ignore[arg-type]
        if kind is int:
            if value.bit_length() > self.limits.int_bits:  # type: ignore[attr-defined]
                raise CallError(f"an integer may have at most {self.limits.int_bits} bits")
            return value  # type: ignore[return-value]
        if kind is float or kind is bool or value is None:
            return value  # type: ignore[return-value]
        raise CallError(f"{kind.__name__} is not a literal value")

    def string(self, value: str) -> str:
        if len(value) > self.limits.string:
            raise CallError(f"a string may have at most {self.limits.string} characters")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise CallError("a string may not hold surrogates")
        return value

    def signed(self, node: ast.UnaryOp) -> Value:
        operand = node.operand
        if type(operand) is ast.Constant and type(operand.value) in (int, float):
            value = self.constant(operand.value)
            if type(node.op) is ast.USub:
                return -value  # type: ignore[operator]
            if type(node.op) is ast.UAdd:
                return value
        raise CallError("a sign must stand before one number")

    def mapping(self, node: ast.Dict, depth: int) -> Value:
        result: dict[Value, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                raise CallError("starred values are not allowed")
            try:
                result[self.value(key, depth)] = self.value(item, depth)
            except TypeError:
                raise CallError("a list or dict cannot be a key") from None
        return result
