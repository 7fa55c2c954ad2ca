"""Plans a BFCL variant: the seed's skeleton of turns, calls and classes over a varied state, filled by search.

For each stretch of calls to one class, sequences that belong together (the seed's own among them) and single functions
compete; arguments come from the sketch of the state and from earlier steps.
"""

import json
from collections.abc import Sequence
from itertools import groupby
from random import Random

from producers.environments.calls import parse_call
from producers.synthesis.backend import PlanRequest
from producers.synthesis.bfcl.sketch import Sketch
from producers.synthesis.bfcl.toolboxes import OWNERS, TOOLBOXES, function_of
from producers.synthesis.errors import StageError
from producers.synthesis.execute import compact
from producers.synthesis.plan import Plan, Step, planned_profile
from producers.synthesis.profile import distance
from schemas.task import Category, TaskDefinition

_CANDIDATES = 4
_TRIES = 60
_SINGLE = 0.35
_RECENT = 6
Stretch = tuple[str, tuple[str, ...]]
"""Consecutive calls of a turn to one class: the class and the functions."""


def propose(request: PlanRequest) -> Plan:
    """Of several plans of the seed's shape, the one whose structure, as far as it is planned, is nearest to the seed's.

    Raises StageError where none can be filled.
    """
    found: list[Plan] = []
    reason = StageError("no plan was tried")
    for number in range(_CANDIDATES):
        try:
            found.append(_draw(request, Random(f"{request.seed} {number}")))
        except StageError as error:
            reason = error
    if not found:
        raise reason
    return min(found, key=lambda plan: distance(request.profile, planned_profile(plan, request.profile.category)))


def _draw(request: PlanRequest, rng: Random) -> Plan:
    task = request.task
    state = json.loads(task.initial_state)
    for name in task.classes:
        TOOLBOXES[name].vary(state.setdefault(name, {}), rng)
    initial_state = compact(state)
    world = Sketch(state, request.category == Category.LONG_CONTEXT)
    withheld = excluded(task)
    blocked = request.blocked | frozenset(withheld)
    turns = tuple(_turn(world, stretches, blocked, rng) for stretches in skeleton(task))
    goal = rng.choice(TOOLBOXES[rng.choice(task.classes)].goals)
    return Plan("bfcl", task.classes, initial_state, request.category, goal, turns, withheld)


def skeleton(task: TaskDefinition) -> list[list[Stretch]]:
    """The stretches of every turn that has calls. Functions of no known class are left out."""
    turns: list[list[Stretch]] = []
    for turn in task.turns:
        names = [parse_call(text).name for text in turn.ground_truth]
        owned = [(OWNERS[name], name) for name in names if OWNERS.get(name) in task.classes]
        if owned:
            turns.append([(owner, tuple(n for _, n in run)) for owner, run in groupby(owned, key=lambda pair: pair[0])])
    return turns


def excluded(task: TaskDefinition) -> tuple[str, ...]:
    """The functions that no turn of the seed offers; those withheld for a while belong to its category."""
    sets = [set(turn.withheld) for turn in task.turns]
    return tuple(sorted(set.intersection(*sets))) if sets else ()


def _turn(world: Sketch, stretches: Sequence[Stretch], blocked: frozenset[str], rng: Random) -> tuple[Step, ...]:
    world.turn = len(world.steps)
    for owner, functions in stretches:
        _fill(world, owner, functions, blocked, rng)
    return tuple(world.steps[world.turn :])


def _fill(world: Sketch, owner: str, functions: tuple[str, ...], blocked: frozenset[str], rng: Random) -> None:
    goal = len(world.steps) + len(functions)
    for attempt in range(_TRIES):
        missing = goal - len(world.steps)
        if not missing:
            return
        for name in _sequence(owner, functions if attempt == 0 else (), missing, blocked, rng):
            if not _add(world, name, rng):
                break
    raise StageError(f"no function of {owner} fits the state here")


def _sequence(owner: str, own: tuple[str, ...], missing: int, blocked: frozenset[str], rng: Random) -> tuple[str, ...]:
    """Functions to try next: the seed's own, ones that belong together, or a single one."""
    box = TOOLBOXES[owner]
    options = [(chain, float(len(chain) ** 2) if len(chain) == missing else 1.0) for chain in box.chains]
    options += [((name,), _SINGLE if missing > 1 else 2 * _SINGLE) for name in box.functions]
    if own:
        options.append((own, 0.5 * sum(weight for _, weight in options)))
    fitting = [(c, w) for c, w in options if len(c) <= missing and blocked.isdisjoint(c)]
    if not fitting:
        raise StageError(f"every function of {owner} is blocked")
    return rng.choices([c for c, _ in fitting], [w for _, w in fitting])[0]


def _add(world: Sketch, name: str, rng: Random) -> bool:
    function = function_of(name)
    arguments = function.sample(world, rng)
    if arguments is None:
        return False
    step = Step(name, tuple(arguments.items()))
    if any(_same(step, other) for other in world.steps[-_RECENT:]):
        return False
    function.effect(world, arguments)
    world.steps.append(step)
    return True


def _same(left: Step, right: Step) -> bool:
    """A repetition among the last few steps; stepping up twice is none."""
    return left == right and left.argument("folder") != ".."
