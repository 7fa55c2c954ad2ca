"""Draws calls that a live world accepts: what generation and any planner over the same tools share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from producers.environments.calls import Call
from producers.environments.workbench.entities import AMOUNTS, HOURS, NAMES, Kind, Value
from producers.environments.workbench.flow import result_kind, value_of
from producers.environments.workbench.tools import Parameter, Presence, ToolSpec
from producers.environments.workbench.world import World

LARGEST_DRAWN = 30


class LookUp(NamedTuple):
    """The latest result of its kind. step: of the call it came from."""

    step: int
    domain: str
    value: Value


@dataclass(slots=True)
class CallDrawer:
    """Draws calls one after the other in a live world and runs each, so that every call drawn is known to work."""

    world: World
    rng: Random
    latest: dict[Kind, LookUp] = field(default_factory=dict)
    """oldest first"""
    seen: set[str] = field(default_factory=set)
    steps: int = 0

    def attempt(self, spec: ToolSpec, fixed: Mapping[str, Value]) -> Call | None:
        """A call of this tool that was not made before and works; None where the draw gives none."""
        call = draw_call(self.world, spec, self.rng, fixed)
        if call is None or call.text() in self.seen:
            return None
        result = self.world.run(call)
        if not result.ok:
            return None
        self.seen.add(call.text())
        kind = result_kind(call, result.text)
        if kind is not None:
            self.latest.pop(kind, None)
            self.latest[kind] = LookUp(self.steps, spec.domain, value_of(result.text))
        self.steps += 1
        return call


def draw_call(world: World, spec: ToolSpec, rng: Random, fixed: Mapping[str, Value]) -> Call | None:
    """A call of this tool with the `fixed` arguments and drawn others; None where no name qualifies.

    The call's names satisfy the parameters' presence; the rest (funds, no change) shows when it is run.
    """
    arguments = dict(fixed)
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
