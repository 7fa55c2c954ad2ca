"""The rules backend for workbench tasks: the generator's own tools, phrases and vocabulary, led by a seed's profile.

A plan draws its calls in a live world, so each is known to work; which calls take an earlier result, look something up
or stay in the seed's domain follows the seed. The workbench's functions are named with everyday words that its small
language also speaks, so only code-like words count as leaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from producers.environments.calls import parse_call
from producers.environments.workbench.dial import NORMAL
from producers.environments.workbench.entities import Value
from producers.environments.workbench.flow import fits, flows
from producers.environments.workbench.generate import split_of
from producers.environments.workbench.language import split
from producers.environments.workbench.phrases import can_stay_open, fill_in, request_for
from producers.environments.workbench.sample import CallDrawer
from producers.environments.workbench.scene import draw_state
from producers.environments.workbench.tools import TOOLS, ToolSpec, tools_of
from producers.environments.workbench.vocabulary import words
from producers.environments.workbench.world import World
from producers.synthesis.backend import (
    Criterion,
    Gap,
    JudgeRequest,
    Opinion,
    PatchRequest,
    PlanRequest,
    RewriteRequest,
    Script,
)
from producers.synthesis.errors import StageError
from producers.synthesis.execute import Patch, patch_of
from producers.synthesis.judging import calls_fault, leaked, open_fault, opinion, repeats_fault, state_fault
from producers.synthesis.plan import Argument, Plan, Ref, Step
from schemas.rules import canonical_json
from schemas.task import Category, TaskDefinition

_SAME_DOMAIN = 0.7
_TRIES = 40
_STATES = 64
_VOCABULARY = frozenset(words())


class WorkbenchBackend:
    """See `Backend`."""

    @property
    def name(self) -> str:
        return "rules"

    def propose(self, request: PlanRequest) -> Plan:
        rng = Random(request.seed)
        task = request.task
        state = _state(task, request.category, rng)
        planner = _VariantPlanner(CallDrawer(World.parse(task.classes, state), rng), task.classes, request.blocked, rng)
        turns = tuple(planner.turn(shape) for shape in _shapes(task))
        return Plan("workbench", task.classes, state, request.category, "", turns)

    def patch(self, request: PatchRequest) -> Patch | None:
        if request.result == "not enough money":
            return patch_of(99, "Wallet", "money")
        if request.result == "too much money":
            return patch_of(0, "Wallet", "money")
        return None

    def rewrite(self, request: RewriteRequest) -> Script:
        plan = request.execution.plan
        calls = [[parse_call(text) for text in turn] for turn in request.execution.calls]
        return Script(
            tuple(
                request_for(made, _stream(request, number), _references(steps))
                for number, (steps, made) in enumerate(zip(plan.turns, calls, strict=True))
            )
        )

    def gaps(self, request: RewriteRequest, script: Script) -> Sequence[Gap]:
        del script
        found = []
        for number, steps in enumerate(request.execution.plan.turns):
            calls = [parse_call(text) for text in request.execution.calls[number]]
            references = _references(steps)
            for index, call in enumerate(calls):
                for name, _ in call.kwargs:
                    if can_stay_open(call, name) and (index, name) not in references:
                        rng = _stream(request, number)
                        opened = request_for(calls, rng, references, (index, name))
                        found.append(Gap(number, opened, fill_in(call, name, rng)))
        return found

    def leaks(self, definition: TaskDefinition) -> Sequence[str]:
        return sorted({word for turn in definition.turns for text in turn.requests for word in leaked(text)})

    def judge(self, request: JudgeRequest) -> Sequence[Opinion]:
        pieces = {piece for turn in request.definition.turns for text in turn.requests for piece in split(text)}
        strange = " ".join(sorted(pieces - _VOCABULARY))[:80]
        return (
            opinion(Criterion.MATCHES, calls_fault(request)),
            opinion(Criterion.CONSISTENT, state_fault(request)),
            opinion(Criterion.COHERENT, repeats_fault(request)),
            opinion(Criterion.NATURAL, f"words outside the vocabulary: {strange}" if strange else None),
            opinion(Criterion.AMBIGUITY, open_fault(request)),
        )


def _stream(request: RewriteRequest, turn: int) -> Random:
    return Random(f"{request.seed} {request.refinement} {turn}")


def _references(steps: Sequence[Step]) -> frozenset[tuple[int, str]]:
    return frozenset(
        (index, name) for index, step in enumerate(steps) for name, value in step.arguments if isinstance(value, Ref)
    )


def _state(task: TaskDefinition, category: str, rng: Random) -> str:
    """A new scene for the same classes, on the same side of the split as the seed's."""
    extra = NORMAL.distractors if category == Category.LONG_CONTEXT else 0
    side = split_of(task.initial_state)
    for _ in range(_STATES):
        state = canonical_json(draw_state(task.classes, extra, rng))
        if split_of(state) == side:
            return state
    raise StageError("no scene on the seed's side of the split")


@dataclass(frozen=True, slots=True)
class _CallShape:
    """What the seed does at one call: its domain, whether it looks something up, whether it takes a result."""

    domain: str
    looks_up: bool
    fed: bool
    from_earlier_turn: bool


def _shapes(task: TaskDefinition) -> list[list[_CallShape]]:
    turns = [[parse_call(text) for text in turn.ground_truth] for turn in task.turns if turn.ground_truth]
    world = World.parse(task.classes, task.initial_state)
    calls = [call for turn in turns for call in turn]
    results = [world.run(call).text for call in calls]
    sources: dict[int, int] = {flow.target: flow.source for flow in flows(calls, results)}
    shapes: list[list[_CallShape]] = []
    at = 0
    for turn in turns:
        first = at
        row = []
        for call in turn:
            spec = TOOLS[call.name]
            row.append(_CallShape(spec.domain, spec.looks_up, at in sources, sources.get(at, first) < first))
            at += 1
        shapes.append(row)
    return shapes


@dataclass(slots=True)
class _VariantPlanner:
    """Plans the turns of one variant."""

    drawer: CallDrawer
    classes: tuple[str, ...]
    blocked: frozenset[str]
    rng: Random

    def turn(self, shapes: Sequence[_CallShape]) -> tuple[Step, ...]:
        return tuple(self._step(shape) for shape in shapes)

    def _step(self, shape: _CallShape) -> Step:
        for _ in range(_TRIES):
            step = self._fed(shape) if shape.fed and self.drawer.latest else None
            step = step or self._free(shape)
            if step is not None:
                return step
        raise StageError("no call of the workbench fits the state here")

    def _specs(self, shape: _CallShape) -> list[ToolSpec]:
        domains = [shape.domain] if self.rng.random() < _SAME_DOMAIN else list(self.classes)
        specs = [spec for name in domains for spec in tools_of(name) if spec.name not in self.blocked]
        wanted = [spec for spec in specs if spec.looks_up == shape.looks_up]
        return wanted or specs

    def _free(self, shape: _CallShape) -> Step | None:
        specs = self._specs(shape)
        return self._run(self.rng.choice(specs), {}, {}) if specs else None

    def _fed(self, shape: _CallShape) -> Step | None:
        options = [
            (spec, parameter.name, source, value)
            for kind, (source, _, value) in self.drawer.latest.items()
            for spec in self._specs(shape)
            for parameter in spec.parameters
            if fits(parameter, kind)
        ]
        if not options:
            return None
        spec, name, source, value = self.rng.choice(options)
        return self._run(spec, {name: value}, {name: Ref(source, ())})

    def _run(self, spec: ToolSpec, fixed: dict[str, Value], refs: dict[str, Ref]) -> Step | None:
        call = self.drawer.attempt(spec, fixed)
        if call is None:
            return None
        arguments: list[tuple[str, Argument]] = [(name, refs.get(name, value)) for name, value in call.kwargs]
        return Step(call.name, tuple(arguments))
