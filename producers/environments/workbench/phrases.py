"""What users say: one request for a sequence of calls, from templates.

A request names every argument in quotes (numbers bare), refers to an earlier result as "that amount", "that day" and so
on, or leaves one argument open as "an amount"; so it determines its calls. No template shares its wording with another
tool's. In a template, "{file}" stands for an argument.
"""

from collections.abc import Collection, Sequence
from random import Random

from producers.environments.calls import Call
from producers.environments.workbench.entities import Kind, Value, kind_of, show
from producers.environments.workbench.tools import PHRASES, TOOLS, Arguments

Slot = tuple[int, str]


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
        text = f"{text} {rng.choice(PHRASES.joiners)} {part}"
    return f"{text} ."


def fill_in(call: Call, parameter: str, rng: Random) -> str:
    """The request that supplies the argument an earlier one left open."""
    kind = _kinds(call)[parameter]
    return f"{rng.choice(PHRASES.fill_ins).format(noun=kind.value, value=show(arguments_of(call)[parameter]))} ."


def can_stay_open(call: Call, parameter: str) -> bool:
    """Whether "an amount", "a day" and the like can stand for this argument."""
    return _kinds(call)[parameter] in PHRASES.open


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
            shown[name] = PHRASES.open[kinds[name]]
        elif (index, name) in references:
            shown[name] = f"that {noun_of(kinds[name], value)}"
        else:
            shown[name] = show(value)
    return rng.choice(TOOLS[call.name].say).format(**shown)
