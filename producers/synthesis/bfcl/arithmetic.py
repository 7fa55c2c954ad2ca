"""MathAPI: arithmetic without state, on figures from the request or from earlier results."""

from random import Random

from producers.synthesis.bfcl.sketch import Arguments, Sampler, Sketch
from producers.synthesis.bfcl.table import read_class, toolbox
from producers.synthesis.plan import Argument, Ref

OWNER = "MathAPI"
_TABLE = read_class("arithmetic")
_RESULTS = _TABLE.maps["results"]


def _known(world: Sketch) -> list[Ref]:
    found = [
        Ref(index, (_RESULTS[step.function],))
        for index, step in enumerate(world.steps)
        if step.function in _RESULTS and index >= world.turn - 3
    ]
    return found[-3:]


def _number(rng: Random) -> float:
    return float(rng.randint(2, 400))


def _figures(world: Sketch, rng: Random) -> Argument:
    known = _known(world)
    return tuple(known) if len(known) >= 2 else [_number(rng) for _ in range(rng.randint(3, 5))]


def _figure(world: Sketch, rng: Random) -> Argument:
    known = _known(world)
    return known[-1] if known else _number(rng)


def _decimal(world: Sketch, rng: Random) -> Argument:
    known = _known(world)
    return known[-1] if known else round(rng.uniform(1, 90), 4)


def _converted(pairs: tuple[str, ...]) -> Sampler:
    def sample(world: Sketch, rng: Random) -> Arguments | None:
        del world
        unit_in, unit_out = rng.choice(pairs).split()
        return {"value": _number(rng), "unit_in": unit_in, "unit_out": unit_out}

    return sample


TOOLBOX = toolbox(
    _TABLE,
    sources={"figures": _figures, "figure": _figure, "decimal": _decimal},
    samplers={
        "si_unit_conversion": _converted(_TABLE.lists["si"]),
        "imperial_si_conversion": _converted(_TABLE.lists["imperial"]),
    },
)
