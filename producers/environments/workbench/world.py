"""One task's simulators, alive: reads a state, runs checked calls, writes a state."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from producers.environments.calls import Call, parse_call
from producers.environments.errors import CallError
from producers.environments.port import CallResult
from producers.environments.workbench.domains import DOMAINS, Domain, ToolRefusal
from producers.environments.workbench.entities import Kind
from producers.environments.workbench.tools import TOOLS, ToolSpec
from schemas.rules import canonical_json

NO_TOOL = "no such tool"
NO_CALL = "not a call"


class World:
    """The simulators of a task. Nothing is shared between two worlds, not even lists inside the state."""

    __slots__ = ("domains",)

    def __init__(self, classes: Sequence[str], state: Mapping[str, Any]) -> None:
        self.domains: dict[str, Domain] = {name: DOMAINS[name](state[name]) for name in classes}

    @classmethod
    def parse(cls, classes: Sequence[str], initial_state: str) -> "World":
        """The world of a task's canonical JSON."""
        return cls(classes, json.loads(initial_state))

    def known(self, domain: str, kind: Kind) -> list[str]:
        """The names of a kind that exist in one simulator."""
        return self.domains[domain].known(kind)

    def state(self) -> dict[str, dict[str, Any]]:
        """Every public attribute of every simulator, by class name; the live objects, not copies."""
        return {name: vars(domain) for name, domain in self.domains.items()}

    def initial_state(self) -> str:
        """The state as canonical JSON; `parse` of it gives an equal world."""
        return canonical_json(self.state())

    def run(self, call: Call, withheld: Sequence[str] = ()) -> CallResult:
        """Runs a parsed call. Whatever is wrong with it is a failed result."""
        spec = TOOLS.get(call.name)
        if spec is None or spec.domain not in self.domains or spec.name in withheld:
            return CallResult(NO_TOOL, ok=False)
        try:
            return CallResult(self._apply(spec, call), ok=True)
        except (ToolRefusal, CallError) as refusal:
            return CallResult(str(refusal), ok=False)

    def run_text(self, text: str, withheld: Sequence[str] = ()) -> CallResult:
        """Runs a call in source form. Never raises for bad text."""
        try:
            call = parse_call(text)
        except CallError:
            return CallResult(NO_CALL, ok=False)
        return self.run(call, withheld)

    def _apply(self, spec: ToolSpec, call: Call) -> str:
        arguments = spec.bind(call)
        method = getattr(self.domains[spec.domain], spec.name)
        return str(method(**arguments))
