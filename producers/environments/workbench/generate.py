"""Makes tasks from a seed: a scene, calls that run in it, and the requests that ask for them.

The split is a property of the content: a candidate is kept only when the hash of its initial state and the hash of its
calls both have the split's parity. So the two splits share neither a state nor a call sequence, whatever the seeds.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from producers.environments.calls import Call
from producers.environments.workbench.dial import NORMAL, Dial
from producers.environments.workbench.entities import Kind, Value
from producers.environments.workbench.flow import fits
from producers.environments.workbench.phrases import Slot, can_stay_open, fill_in, request_for
from producers.environments.workbench.sample import CallDrawer
from producers.environments.workbench.scene import draw_state
from producers.environments.workbench.tools import ToolSpec, tools_of
from producers.environments.workbench.world import World
from schemas.rules import canonical_json
from schemas.task import Category, TaskDefinition, Turn

SPLITS = ("train", "heldout")
SOURCE = "workbench"


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """The calls of one turn and the arguments among them that are earlier results."""

    calls: tuple[Call, ...]
    references: frozenset[Slot] = frozenset()


class _NoPlanError(Exception):
    """This draw led nowhere; the next one is tried."""


def generate(seed: int, index: int, split: str, dial: Dial = NORMAL) -> TaskDefinition:
    """The task at `index` of a split: a pure function of its arguments. Categories take turns by index.

    Raises ValueError for an unknown split.
    """
    parity = SPLITS.index(split)
    category = dial.categories[index % len(dial.categories)]
    attempt = 0
    while True:
        rng = Random(_digest(f"workbench {seed} {split} {index} {attempt}"))
        attempt += 1
        try:
            task = _draw(rng, parity, category, dial)
        except _NoPlanError:
            continue
        return replace(task, task=f"workbench-{split}-{seed}-{index}")


def split_of(initial_state: str) -> str:
    """The split that a state belongs to. A patched state may change sides; a variant is used where its parent is."""
    return SPLITS[_digest(initial_state) % 2]


def compose(turns: Sequence[PlannedTurn], category: Category, rng: Random) -> tuple[Turn, ...]:
    """The turns of a task: requests for each planned turn, one of them split in two for the missing categories.

    Raises ValueError where a missing-parameter task has no argument that can stay open.
    """
    if category is Category.MISSING_FUNCTION:
        return _without_function(turns, rng)
    if category is Category.MISSING_PARAMETER:
        return _without_parameter(turns, rng)
    return tuple(_turn(turn, rng) for turn in turns)


def _draw(rng: Random, parity: int, category: Category, dial: Dial) -> TaskDefinition:
    classes = tuple(sorted(rng.sample(("Calendar", "Contacts", "Files", "Wallet"), rng.randint(*dial.classes))))
    extra = dial.distractors if category is Category.LONG_CONTEXT else 0
    initial_state = canonical_json(draw_state(classes, extra, rng))
    digest = _digest(initial_state)
    if digest % 2 != parity:
        raise _NoPlanError
    splits_one = category in (Category.MISSING_FUNCTION, Category.MISSING_PARAMETER)
    planned = _TaskPlanner(CallDrawer(World.parse(classes, initial_state), rng), classes, dial, rng).turns(
        rng.randint(*dial.turns) - splits_one
    )
    if _digest("\n".join(call.text() for turn in planned for call in turn.calls)) % 2 != parity:
        raise _NoPlanError
    try:
        turns = compose(planned, category, rng)
    except ValueError:
        raise _NoPlanError from None
    return TaskDefinition("", SOURCE, category.value, f"{digest:032x}"[:16], classes, initial_state, turns)


@dataclass(slots=True)
class _TaskPlanner:
    """Plans the turns of one task."""

    drawer: CallDrawer
    classes: tuple[str, ...]
    dial: Dial
    rng: Random

    def turns(self, count: int) -> tuple[PlannedTurn, ...]:
        return tuple(self._turn() for _ in range(max(1, count)))

    def _turn(self) -> PlannedTurn:
        wanted = self.rng.randint(*self.dial.calls)
        calls: list[Call] = []
        references: set[Slot] = set()
        if self.drawer.latest and self.rng.random() < self.dial.carry:
            self._feed(calls, references, None)
        if wanted - len(calls) > 1 and self.rng.random() < self.dial.chain:
            self._feed(calls, references, self._run(self._pick(looks_up=True), {}, calls))
        while len(calls) < wanted:
            self._run(self._pick(), {}, calls)
        return PlannedTurn(tuple(calls), frozenset(references))

    def _specs(self) -> list[ToolSpec]:
        return [spec for name in self.classes for spec in tools_of(name)]

    def _pick(self, looks_up: bool = False) -> list[ToolSpec]:
        specs = [spec for spec in self._specs() if spec.looks_up or not looks_up]
        return self.rng.sample(specs, len(specs))

    def _feed(self, calls: list[Call], references: set[Slot], kind: Kind | None) -> None:
        """Adds a call that takes the latest result (of this kind, or of any), if some tool can."""
        options = [
            (spec, parameter.name, value)
            for key, (_, domain, value) in self.drawer.latest.items()
            if kind in (None, key)
            for spec in self._specs()
            for parameter in spec.parameters
            if fits(parameter, key) and (spec.domain != domain) == (self.rng.random() < self.dial.cross)
        ]
        self.rng.shuffle(options)
        for spec, parameter, value in options:
            before = len(calls)
            if self._attempt(spec, {parameter: value}, calls):
                references.add((before, parameter))
                return

    def _run(self, specs: Sequence[ToolSpec], fixed: dict[str, Value], calls: list[Call]) -> Kind | None:
        for spec in [*specs, *specs]:
            if self._attempt(spec, fixed, calls):
                return next(reversed(self.drawer.latest), None) if spec.looks_up else None
        raise _NoPlanError

    def _attempt(self, spec: ToolSpec, fixed: dict[str, Value], calls: list[Call]) -> bool:
        call = self.drawer.attempt(spec, fixed)
        if call is not None:
            calls.append(call)
        return call is not None


def _turn(turn: PlannedTurn, rng: Random) -> Turn:
    return Turn((request_for(turn.calls, rng, turn.references),), _texts(turn))


def _texts(turn: PlannedTurn) -> tuple[str, ...]:
    return tuple(call.text() for call in turn.calls)


def _without_function(turns: Sequence[PlannedTurn], rng: Random) -> tuple[Turn, ...]:
    chosen = rng.randrange(len(turns))
    made: list[Turn] = []
    for index, turn in enumerate(turns):
        whole = _turn(turn, rng)
        if index == chosen:
            made += [
                replace(whole, ground_truth=(), withheld=(rng.choice(turn.calls).name,)),
                replace(whole, requests=()),
            ]
        else:
            made.append(whole)
    return tuple(made)


def _without_parameter(turns: Sequence[PlannedTurn], rng: Random) -> tuple[Turn, ...]:
    slots = [(index, slot) for index, turn in enumerate(turns) for slot in _open_slots(turn)]
    if not slots:
        raise ValueError("no argument of these calls can stay open")
    chosen, slot = rng.choice(slots)
    made: list[Turn] = []
    for index, turn in enumerate(turns):
        if index == chosen:
            request = request_for(turn.calls, rng, turn.references, slot)
            answer = fill_in(turn.calls[slot[0]], slot[1], rng)
            made += [Turn((request,), ()), Turn((answer,), _texts(turn))]
        else:
            made.append(_turn(turn, rng))
    return tuple(made)


def _open_slots(turn: PlannedTurn) -> list[Slot]:
    """Arguments that can be left out: of the turn's short ones only, and none that is an earlier result."""
    return [
        (index, name)
        for index, call in enumerate(turn.calls)
        for name, _ in call.kwargs
        if can_stay_open(call, name) and (index, name) not in turn.references
    ]


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
