"""Draws calls that a live world accepts: what generation and any planner over the same tools share."""

from collections.abc import Mapping
from random import Random

from producers.environments.calls import Call
from producers.environments.workbench.entities import AMOUNTS, HOURS, NAMES, Kind, Value
from producers.environments.workbench.tools import Parameter, Presence, ToolSpec
from producers.environments.workbench.world import World

LARGEST_DRAWN = 30


def draw_call(world: World, spec: ToolSpec, rng: Random, fixed: Mapping[str, Value] | None = None) -> Call | None:
    """A call of this tool with the `fixed` arguments and drawn others; None where no name qualifies.

    The call's names satisfy the parameters' presence; the rest (funds, no change) shows when it is run.
    """
    arguments = dict(fixed or {})
    for parameter in spec.parameters:
        if parameter.name in arguments:
            continue
        values = candidates(world, spec, parameter)
        if not values:
            return None
        arguments[parameter.name] = rng.choice(values)
    return spec.call(arguments)


def candidates(world: World, spec: ToolSpec, parameter: Parameter) -> list[Value]:
    """The values that may stand for a parameter in this world."""
    kind = parameter.kind
    if kind is Kind.AMOUNT:
        return list(AMOUNTS[1:LARGEST_DRAWN])
    if kind is Kind.HOUR:
        return list(HOURS)
    if kind is Kind.TEXT:
        return [*AMOUNTS[1:LARGEST_DRAWN], *NAMES[Kind.DAY], *NAMES[Kind.PERSON], *NAMES[Kind.CITY]]
    known = world.known(spec.domain, kind)
    if parameter.presence is Presence.KNOWN:
        return list(known)
    if parameter.presence is Presence.NEW:
        return [name for name in NAMES[kind] if name not in known]
    return list(NAMES[kind])
