"""Turns a base task into its seed's category: a tool withheld for a while, or a value left open and supplied later.

Long context is a property of the world the plan ran in, so there is nothing left to do for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from producers.environments.calls import parse_call
from producers.synthesis.backend import Gap
from producers.synthesis.errors import StageError
from schemas.task import Category, TaskDefinition, Turn


def augment(base: TaskDefinition, category: str, gaps: Sequence[Gap], early: bool, rng: Random) -> TaskDefinition:
    """The variant in `category`. Raises StageError where the base task offers no place for it.

    early: whether a withheld tool is missing from the first turn on, as in BFCL, or only where it is needed. A category
    that is a source's own leaves the task as it is.
    """
    turns = base.turns
    if category == Category.MISSING_FUNCTION:
        turns = _without_function(base, early, rng)
    elif category == Category.MISSING_PARAMETER:
        turns = _without_parameter(base, gaps, rng)
    return replace(base, category=category, turns=turns)


def _without_function(base: TaskDefinition, early: bool, rng: Random) -> tuple[Turn, ...]:
    """Withholds a function that no turn before uses, until a turn that only reveals it."""
    options = []
    used: set[str] = set()
    for number, turn in enumerate(base.turns):
        names = sorted({parse_call(text).name for text in turn.ground_truth})
        options += [(number, name) for name in names if not early or name not in used]
        used.update(names)
    if not options:
        raise StageError("no function can be withheld")
    chosen, name = rng.choice(options)
    made: list[Turn] = []
    for number, turn in enumerate(base.turns):
        hidden = replace(turn, withheld=tuple(sorted({*turn.withheld, name})))
        if number == chosen:
            made += [replace(hidden, ground_truth=()), replace(turn, requests=())]
        else:
            made.append(hidden if early and number < chosen else turn)
    return tuple(made)


def _without_parameter(base: TaskDefinition, gaps: Sequence[Gap], rng: Random) -> tuple[Turn, ...]:
    if not gaps:
        raise StageError("no argument can be left open")
    gap = rng.choice(list(gaps))
    turn = base.turns[gap.turn]
    opened = replace(turn, requests=(gap.request,), ground_truth=())
    supplied = replace(turn, requests=(gap.supply,))
    return (*base.turns[: gap.turn], opened, supplied, *base.turns[gap.turn + 1 :])
