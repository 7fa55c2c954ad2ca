"""What users say: one request for a sequence of calls, from templates.

A request names every argument in quotes (numbers bare), refers to an earlier result as "that amount", "that day" and so
on, or leaves one argument open as "an amount"; so it determines its calls. No template shares its wording with another
tool's. In a template, "{file}" stands for an argument.
"""

from collections.abc import Collection, Mapping, Sequence
from random import Random

from producers.environments.calls import Call
from producers.environments.workbench.entities import Kind, Value, kind_of, show
from producers.environments.workbench.tools import TOOLS, Arguments

Slot = tuple[int, str]

TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "find": ("where is {file}", "which folder holds {file}"),
    "read": ("read {file}", "what does {file} say"),
    "list_files": ("list {folder}", "what is in {folder}"),
    "create": ("create {file} in {folder} with {text}", "make a file {file} in {folder} saying {text}"),
    "write": ("write {text} to {file}", "replace the text of {file} with {text}"),
    "move": ("move {file} to {folder}", "put {file} into {folder}"),
    "delete": ("delete {file}", "throw {file} away"),
    "new_folder": ("make a folder {folder}", "add folder {folder}"),
    "day_of": ("which day is {event}", "tell me the day of {event}"),
    "hour_of": ("what hour is {event}", "tell me the hour of {event}"),
    "agenda": ("what happens on {day}", "show my agenda for {day}"),
    "add_event": ("plan {event} on {day} at {hour}", "add {event} on {day} at {hour} to my calendar"),
    "set_day": ("shift {event} to {day}", "change the day of {event} to {day}"),
    "set_hour": ("start {event} at {hour}", "change the hour of {event} to {hour}"),
    "invite": ("invite {person} to {event}", "ask {person} to come to {event}"),
    "cancel": ("cancel {event}", "call {event} off"),
    "balance": ("how much money do i have", "check my balance"),
    "debt": ("how much do i owe {person}", "check my debt to {person}"),
    "deposit": ("deposit {amount}", "add {amount} to my wallet"),
    "pay": ("pay {person} {amount}", "give {person} {amount} from my wallet"),
    "borrow": ("borrow {amount} from {person}", "take a loan of {amount} from {person}"),
    "city_of": ("where does {person} live", "look up the city of {person}"),
    "boss_of": ("who is the boss of {person}", "look up the boss of {person}"),
    "set_city": ("{person} moved to {city}", "change the city of {person} to {city}"),
    "set_boss": ("{boss} is now the boss of {person}", "make {boss} the boss of {person}"),
    "send": ("send {text} to {person}", "tell {person} {text}"),
    "forget": ("forget {person}", "remove {person} from my contacts"),
}
JOINERS = ("then", "and then")
FILL_INS = ("the {noun} is {value}", "use {value} as the {noun}")
OPEN: Mapping[Kind, str] = {
    Kind.FOLDER: "a folder",
    Kind.PERSON: "a person",
    Kind.DAY: "a day",
    Kind.CITY: "a city",
    Kind.HOUR: "an hour",
    Kind.AMOUNT: "an amount",
    Kind.TEXT: "a text",
}


def request_for(
    calls: Sequence[Call], rng: Random, references: Collection[Slot] = (), open_slot: Slot | None = None
) -> str:
    """One request for the calls, in order, closed by a full stop.

    references: (index of the call, parameter) of arguments that are the latest result of their kind. open_slot: the one
    argument left open. Raises KeyError for a tool or an argument that does not exist.
    """
    parts = [_phrase(index, call, rng, references, open_slot) for index, call in enumerate(calls)]
    text = parts[0]
    for part in parts[1:]:
        text = f"{text} {rng.choice(JOINERS)} {part}"
    return f"{text} ."


def fill_in(call: Call, parameter: str, rng: Random) -> str:
    """The request that supplies the argument an earlier one left open."""
    kind = _kinds(call)[parameter]
    return f"{rng.choice(FILL_INS).format(noun=kind.value, value=show(arguments_of(call)[parameter]))} ."


def can_stay_open(call: Call, parameter: str) -> bool:
    """Whether "an amount", "a day" and the like can stand for this argument."""
    return _kinds(call)[parameter] in OPEN


def arguments_of(call: Call) -> Arguments:
    """The arguments by name. Raises CallError where the call does not fit its tool."""
    return TOOLS[call.name].bind(call)


def noun_of(kind: Kind, value: Value) -> str:
    """The word after "that" for an earlier result in a parameter of this kind."""
    return (kind_of(value) or kind).value if kind is Kind.TEXT else kind.value


def _kinds(call: Call) -> dict[str, Kind]:
    return {parameter.name: parameter.kind for parameter in TOOLS[call.name].parameters}


def _phrase(index: int, call: Call, rng: Random, references: Collection[Slot], open_slot: Slot | None) -> str:
    kinds = _kinds(call)
    shown: dict[str, str] = {}
    for name, value in arguments_of(call).items():
        if (index, name) == open_slot:
            shown[name] = OPEN[kinds[name]]
        elif (index, name) in references:
            shown[name] = f"that {noun_of(kinds[name], value)}"
        else:
            shown[name] = show(value)
    return rng.choice(TEMPLATES[call.name]).format(**shown)
