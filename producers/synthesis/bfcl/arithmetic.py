"""MathAPI: arithmetic without state, on figures from the request or from earlier results."""

from random import Random
from typing import Any

from producers.synthesis.catalogue import Arguments, Function, Sketch, Toolbox
from producers.synthesis.plan import Argument, Ref

OWNER = "MathAPI"
_SOURCES = {
    "wc": "count", "estimate_distance": "distance", "liter_to_gallon": "gallon", "gallon_to_liter": "liter",
    "fillFuelTank": "fuelLevel", "mean": "result", "sum_values": "result", "max_value": "result", "multiply": "result",
    "min_value": "result", "subtract": "result", "divide": "result", "add": "result", "get_flight_cost": "",
}  # fmt: skip


def _figures(world: Sketch) -> list[Ref]:
    found = [
        Ref(index, (_SOURCES[step.function],))
        for index, step in enumerate(world.steps)
        if _SOURCES.get(step.function) and index >= world.turn - 3
    ]
    return found[-3:]


def _number(rng: Random) -> float:
    return float(rng.randint(2, 400))


def _list(world: Sketch, rng: Random) -> Arguments | None:
    figures = _figures(world)
    if len(figures) >= 2:
        return {"numbers": tuple(figures)}
    return {"numbers": [_number(rng) for _ in range(rng.randint(3, 5))]}


def _one(name: str) -> Any:
    def sample(world: Sketch, rng: Random) -> Arguments | None:
        figures = _figures(world)
        return {name: figures[-1] if figures else _number(rng)}

    return sample


def _pair(first: str, second: str) -> Any:
    def sample(world: Sketch, rng: Random) -> Arguments | None:
        figures = _figures(world)
        value: Argument = figures[-1] if figures else _number(rng)
        return {first: value, second: float(rng.randint(2, 60))}

    return sample


def _log(world: Sketch, rng: Random) -> Arguments | None:
    figures = _figures(world)
    value: Argument = figures[-1] if figures else _number(rng)
    return {"value": value, "base": rng.choice((2, 10)), "precision": rng.randint(2, 6)}


def _log_words(arguments: Arguments) -> tuple[str, ...]:
    return (f"take the base {arguments['base']} log of {{value}} with {arguments['precision']} digits of precision",)


def _power(world: Sketch, rng: Random) -> Arguments | None:
    del world
    return {"base": float(rng.randint(2, 9)), "exponent": float(rng.randint(2, 4))}


def _root(world: Sketch, rng: Random) -> Arguments | None:
    base = _one("number")(world, rng)
    return {**base, "precision": rng.randint(3, 8)}


def _round(world: Sketch, rng: Random) -> Arguments | None:
    figures = _figures(world)
    value: Argument = figures[-1] if figures else round(rng.uniform(1, 90), 4)
    return {"number": value, "decimal_places": rng.randint(1, 2)}


def _convert(units: tuple[tuple[str, str], ...]) -> Any:
    def sample(world: Sketch, rng: Random) -> Arguments | None:
        del world
        unit_in, unit_out = rng.choice(units)
        return {"value": _number(rng), "unit_in": unit_in, "unit_out": unit_out}

    return sample


_SI = (("km", "m"), ("m", "cm"), ("cm", "mm"), ("mm", "m"))
_IMPERIAL = (("cm", "in"), ("m", "ft"), ("km", "miles"), ("miles", "km"), ("kg", "lb"), ("lb", "kg"))

FUNCTIONS = {
    "logarithm": Function(_log_words, _log, implied=frozenset({"base", "precision"})),
    "mean": Function(("work out the average of {numbers}", "tell me what {numbers} average out to"), _list),
    "standard_deviation": Function(("work out how widely {numbers} are spread, as standard deviation",), _list),
    "si_unit_conversion": Function(("convert {value} from {unit_in} to {unit_out}",), _convert(_SI)),
    "imperial_si_conversion": Function(("convert {value} from {unit_in} to {unit_out}",), _convert(_IMPERIAL)),
    "add": Function(("work out {a} plus {b}",), _pair("a", "b")),
    "subtract": Function(("work out {a} minus {b}",), _pair("a", "b")),
    "multiply": Function(("work out {a} times {b}",), _pair("a", "b")),
    "divide": Function(("work out {a} split by {b}",), _pair("a", "b")),
    "power": Function(("raise {base} to the exponent {exponent}",), _power),
    "square_root": Function(("take the square root of {number} with {precision} digits",), _root),
    "absolute_value": Function(("give me {number} without its sign",), _one("number")),
    "round_number": Function(("round {number} to {decimal_places} decimals",), _round),
    "percentage": Function(("tell me what percent of {whole} {part} is",), _pair("part", "whole")),
    "min_value": Function(("pick the smallest of {numbers}",), _list),
    "max_value": Function(("pick the largest of {numbers}",), _list),
    "sum_values": Function(("total up {numbers}",), _list),
}
CHAINS = (("sum_values", "divide"), ("max_value", "min_value"), ("mean", "round_number"))
GOALS = ("the monthly figures", "the cost estimate", "the survey numbers")


def vary(config: dict[str, Any], rng: Random) -> None:
    """Nothing to vary: the class has no state."""
    del config, rng


TOOLBOX = Toolbox(FUNCTIONS, CHAINS, vary, GOALS)
