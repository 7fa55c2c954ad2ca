"""Every tool of the workbench, declared: parameters, what must hold, what it returns and what it changes.

A planner needs nothing else: it samples a tool, takes a KNOWN argument from what exists in a live simulator, a NEW one
from the closed lists, and lets a result of kind K feed a later parameter of kind K. A tool that returns a kind may
feed; one that returns None changes the state and answers "done".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from producers.environments.calls import Call
from producers.environments.errors import CallError
from producers.environments.port import Tool
from producers.environments.workbench.entities import LARGEST, Kind, Value, belongs

Arguments = dict[str, Value]


class Presence(StrEnum):
    """What must hold of an argument's name before the call: it exists in the tool's simulator, must not, or either."""

    KNOWN = "known"
    NEW = "new"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Parameter:
    """name, the kind of value it takes, and whether that name must exist. `feeds`: a result may stand here."""

    name: str
    kind: Kind
    presence: Presence = Presence.ANY
    feeds: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. domain: the simulator's class name. returns: the kind a look-up yields (TEXT: whatever is written in
    the file), LISTING for several values, None for a change. requires: further preconditions, for people and patches,
    as (state attribute, relation, parameter)."""

    name: str
    domain: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: Kind | None = None
    requires: tuple[tuple[str, str, str], ...] = ()

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

_FILE = Parameter("file", Kind.FILE, Presence.KNOWN)
_NEW_FILE = Parameter("file", Kind.FILE, Presence.NEW)
_FOLDER = Parameter("folder", Kind.FOLDER, Presence.KNOWN, feeds=True)
_EVENT = Parameter("event", Kind.EVENT, Presence.KNOWN)
_NEW_EVENT = Parameter("event", Kind.EVENT, Presence.NEW)
_ANYONE = Parameter("person", Kind.PERSON, feeds=True)
_CONTACT = Parameter("person", Kind.PERSON, Presence.KNOWN)
_CREDITOR = Parameter("person", Kind.PERSON, Presence.KNOWN)
_DAY = Parameter("day", Kind.DAY, feeds=True)
_HOUR = Parameter("hour", Kind.HOUR, feeds=True)
_AMOUNT = Parameter("amount", Kind.AMOUNT, feeds=True)
_TEXT = Parameter("text", Kind.TEXT, feeds=True)
_FUNDS = (("money", "at_least", "amount"),)

_SPECS = (
    ToolSpec("find", "Files", "the folder that holds a file", (_FILE,), Kind.FOLDER),
    ToolSpec("read", "Files", "what is written in a file", (_FILE,), Kind.TEXT),
    ToolSpec(
        "list_files",
        "Files",
        "the files in a folder",
        (Parameter("folder", Kind.FOLDER, Presence.KNOWN),),
        Kind.LISTING,
    ),
    ToolSpec("create", "Files", "a new file in a folder", (_NEW_FILE, _FOLDER, _TEXT)),
    ToolSpec("write", "Files", "replaces what is written in a file", (_FILE, _TEXT)),
    ToolSpec("move", "Files", "moves a file to another folder", (_FILE, _FOLDER)),
    ToolSpec("delete", "Files", "deletes a file", (_FILE,)),
    ToolSpec("new_folder", "Files", "a new folder", (Parameter("folder", Kind.FOLDER, Presence.NEW),)),
    ToolSpec("day_of", "Calendar", "the day of an event", (_EVENT,), Kind.DAY),
    ToolSpec("hour_of", "Calendar", "the hour of an event", (_EVENT,), Kind.HOUR),
    ToolSpec("agenda", "Calendar", "the events of a day", (Parameter("day", Kind.DAY),), Kind.LISTING),
    ToolSpec("add_event", "Calendar", "a new event", (_NEW_EVENT, _DAY, _HOUR)),
    ToolSpec("set_day", "Calendar", "moves an event to another day", (_EVENT, _DAY)),
    ToolSpec("set_hour", "Calendar", "moves an event to another hour", (_EVENT, _HOUR)),
    ToolSpec("invite", "Calendar", "adds a guest to an event", (_EVENT, _ANYONE)),
    ToolSpec("cancel", "Calendar", "cancels an event", (_EVENT,)),
    ToolSpec("balance", "Wallet", "the money there is", (), Kind.AMOUNT),
    ToolSpec("debt", "Wallet", "what is owed to a person", (_CREDITOR,), Kind.AMOUNT),
    ToolSpec("deposit", "Wallet", "puts money in", (_AMOUNT,)),
    ToolSpec("pay", "Wallet", "pays a person", (_ANYONE, _AMOUNT), requires=_FUNDS),
    ToolSpec("borrow", "Wallet", "borrows money from a person", (_ANYONE, _AMOUNT)),
    ToolSpec("city_of", "Contacts", "the city of a person", (_CONTACT,), Kind.CITY),
    ToolSpec("boss_of", "Contacts", "the boss of a person", (_CONTACT,), Kind.PERSON),
    ToolSpec("set_city", "Contacts", "changes a person's city", (_CONTACT, Parameter("city", Kind.CITY, feeds=True))),
    ToolSpec("set_boss", "Contacts", "changes a person's boss", (_CONTACT, Parameter("boss", Kind.PERSON, feeds=True))),
    ToolSpec("send", "Contacts", "sends a message to a person", (_CONTACT, _TEXT)),
    ToolSpec("forget", "Contacts", "removes a person", (_CONTACT,)),
)
TOOLS: Mapping[str, ToolSpec] = {spec.name: spec for spec in _SPECS}


def tools_of(domain: str) -> tuple[ToolSpec, ...]:
    """The tools of one simulator, in declared order."""
    return tuple(spec for spec in _SPECS if spec.domain == domain)
