"""Every tool of the workbench (tools.toml): its parameters, what it returns, and the requests for it.

A planner needs nothing else: it samples a tool, takes a KNOWN argument from what exists in a live simulator, a NEW one
from the closed lists, and lets a result of kind K feed a later parameter of kind K. A tool that returns a kind may
feed; one that returns None changes the state and answers "done".
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from producers.environments.calls import Call
from producers.environments.errors import CallError
from producers.environments.jsonlines import Record
from producers.environments.port import Tool
from producers.environments.tables import load
from producers.environments.workbench.entities import LARGEST, Kind, Value, belongs

Arguments = dict[str, Value]


class Presence(StrEnum):
    """What must hold of an argument's name before the call: it exists in the tool's simulator, must not, or either."""

    KNOWN = "known"
    NEW = "new"
    ANY = "any"


class Parameter(Record):
    """name, the kind of value it takes, and whether that name must exist. `feeds`: a result may stand here."""

    name: str
    kind: Kind
    presence: Presence = Presence.ANY
    feeds: bool = False


class ToolEntry(Record):
    """A tool of the table."""

    name: str
    domain: str
    """the simulator's class name"""
    description: str
    takes: tuple[str, ...]
    """parameters by their names in the table"""
    returns: Kind | None = None
    """the kind a look-up yields; TEXT: whatever is written in the file; LISTING: several values; None: a change"""
    say: tuple[str, ...]
    """requests for it"""


class ToolSpec(ToolEntry):
    """One tool with its parameters in declared order."""

    parameters: tuple[Parameter, ...]

    @property
    def reads(self) -> bool:
        """Whether the tool leaves the state as it is."""
        return self.returns is not None

    @property
    def looks_up(self) -> bool:
        """Whether its result is one value that a later argument can take."""
        return self.returns not in (None, Kind.LISTING)

    def bind(self, call: Call) -> Arguments:
        """The arguments by name, complete and of the right kinds. Raises CallError of one fixed sentence each."""
        if len(call.args) > len(self.parameters):
            raise CallError("too many arguments")
        given = dict(zip([parameter.name for parameter in self.parameters], call.args, strict=False))
        for name, value in call.kwargs:
            if name in given:
                raise CallError("argument given twice")
            given[name] = value
        if set(given) - {parameter.name for parameter in self.parameters}:
            raise CallError("unknown argument")
        return {parameter.name: _checked(parameter, given) for parameter in self.parameters}

    def call(self, arguments: Mapping[str, Value]) -> Call:
        """The call with these arguments, in declared order."""
        return Call(self.name, (), tuple((parameter.name, arguments[parameter.name]) for parameter in self.parameters))

    def tool(self) -> Tool:
        """The tool as the port announces it."""
        properties = {parameter.name: _schema(parameter.kind) for parameter in self.parameters}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return Tool(self.name, self.description, schema)


def _checked(parameter: Parameter, given: Mapping[str, object]) -> Value:
    if parameter.name not in given:
        raise CallError("argument missing")
    value = given[parameter.name]
    if not isinstance(value, str | int) or not belongs(value, parameter.kind):
        raise CallError(f"not a {parameter.kind.value}")
    return value


def _schema(kind: Kind) -> Mapping[str, Any]:
    if kind is Kind.AMOUNT:
        return {"type": "integer", "minimum": 0, "maximum": LARGEST}
    if kind is Kind.HOUR:
        return {"type": "integer", "minimum": 8, "maximum": 20}
    return {"type": ["string", "integer"]} if kind is Kind.TEXT else {"type": "string"}


BIND_ERRORS = (
    "too many arguments",
    "argument given twice",
    "unknown argument",
    "argument missing",
    *(f"not a {kind.value}" for kind in Kind if kind is not Kind.LISTING),
)


class Phrases(Record):
    """Words around requests: between two of one turn, to supply an argument, and to leave one of a kind open."""

    joiners: tuple[str, ...]
    fill_ins: tuple[str, ...]
    open: Mapping[Kind, str]


class _Tools(Record):
    parameters: Mapping[str, Parameter]
    tools: tuple[ToolEntry, ...]
    phrases: Phrases

    def specs(self) -> Iterator[ToolSpec]:
        for tool in self.tools:
            yield ToolSpec(**dict(tool), parameters=tuple(self.parameters[name] for name in tool.takes))

    @model_validator(mode="after")
    def _known(self) -> Self:
        unknown = sorted({name for tool in self.tools for name in tool.takes} - set(self.parameters))
        if unknown:
            raise ValueError(f"there is no parameter {', '.join(unknown)}")
        return self


_TABLE = load(Path(__file__).with_name("tools.toml"), _Tools)
_SPECS = tuple(_TABLE.specs())
PHRASES = _TABLE.phrases
TOOLS: Mapping[str, ToolSpec] = {spec.name: spec for spec in _SPECS}


def tools_of(domain: str) -> tuple[ToolSpec, ...]:
    """The tools of one simulator, in declared order."""
    return tuple(spec for spec in _SPECS if spec.domain == domain)
