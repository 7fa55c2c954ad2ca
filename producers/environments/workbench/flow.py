"""Which results feed which arguments: a look-up's value and the later argument that takes it."""

from collections.abc import Sequence
from dataclasses import dataclass

from producers.environments.calls import Call
from producers.environments.workbench.entities import Kind, Value, kind_of
from producers.environments.workbench.tools import TOOLS, Parameter


@dataclass(frozen=True, slots=True)
class Flow:
    """The result of call `source` is argument `parameter` of call `target`; both count over the whole sequence."""

    source: int
    target: int
    parameter: str


def value_of(text: str) -> Value:
    """The value that a look-up's result text shows."""
    return int(text) if text.isdigit() else text.strip("'")


def result_kind(call: Call, text: str) -> Kind | None:
    """The kind of a look-up's result (of what is written, for a file); None where the call feeds nothing."""
    spec = TOOLS[call.name]
    if not spec.looks_up:
        return None
    return kind_of(value_of(text)) if spec.returns is Kind.TEXT else spec.returns


def fits(parameter: Parameter, kind: Kind) -> bool:
    """Whether a result of this kind may stand in a parameter. An hour is no text: "that amount" would not name it."""
    return parameter.feeds and (parameter.kind is kind or (parameter.kind is Kind.TEXT and kind is not Kind.HOUR))


def flows(calls: Sequence[Call], results: Sequence[str]) -> tuple[Flow, ...]:
    """Every argument that equals the latest result of a kind that fits it, over a whole sequence and its results."""
    latest: dict[Kind, tuple[int, Value]] = {}
    found: list[Flow] = []
    for index, (call, result) in enumerate(zip(calls, results, strict=True)):
        arguments = TOOLS[call.name].bind(call)
        for parameter in TOOLS[call.name].parameters:
            sources = [
                source
                for kind, (source, value) in latest.items()
                if fits(parameter, kind) and value == arguments[parameter.name]
            ]
            if sources:
                found.append(Flow(max(sources), index, parameter.name))
        kind = result_kind(call, result)
        if kind is not None:
            latest[kind] = (index, value_of(result))
    return tuple(found)
