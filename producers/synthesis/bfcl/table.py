"""What a class's table (a TOML file beside this one) says of its functions, and the toolbox made from it.

The table holds words, sequences and regular arguments. What needs the state is code: a source gives one argument, a
sampler all arguments of a function, an effect what a call changes; each is found by its name in the table.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Self

from pydantic import model_validator

from producers.environments.errors import TableError
from producers.environments.jsonlines import Record
from producers.environments.tables import load
from producers.synthesis.bfcl.sketch import Arguments, Effect, Sampler, Sketch
from producers.synthesis.bfcl.words import LISTS
from producers.synthesis.plan import Argument

Scalar = bool | int | float | str
Source = Callable[[Sketch, Random], Argument]
"""One argument from the state of the sketch; None where the function does not fit it."""
_WORD = re.compile(r"<(\w+)>")


class Draw(Record):
    """How a value is drawn: `value` as it is, one of `choice`, some of them, a number, or a text around a number."""

    value: Scalar | None = None
    choice: str | tuple[Scalar, ...] = ()
    """values, or the name of a list of words.toml"""
    unused: bool = False
    """only what no planned call of this function has for this argument"""
    some: tuple[int, int] | None = None
    """fewest and most of `choice` to draw"""
    whole: tuple[int, int] | tuple[int, int, int] | None = None
    """least and most of a whole number; with a step as third, least and the end, which is not drawn"""
    real: tuple[int, int] | tuple[int, int, int] | None = None
    """the same for a whole number as float"""
    text: str = ""
    """a text whose `{}` is the `whole` number"""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if isinstance(self.choice, str) and self.choice not in LISTS:
            raise ValueError(f"there is no list {self.choice!r}")
        if self.value is None and not (self.choice or self.whole or self.real):
            raise ValueError("there is nothing to draw from")
        return self

    def options(self) -> Sequence[Scalar]:
        return LISTS[self.choice] if isinstance(self.choice, str) else self.choice

    def draw(self, rng: Random, taken: Sequence[Argument] = ()) -> Argument:
        """The value; None where all are taken."""
        if self.value is not None:
            return self.value
        if self.real:
            return float(_number(self.real, rng))
        if self.whole:
            number = _number(self.whole, rng)
            return self.text.format(number) if self.text else number
        if self.some:
            return rng.sample(self.options(), rng.randint(*self.some))
        free = [option for option in self.options() if not (self.unused and option in taken)]
        return rng.choice(free) if free else None


class Case(Record):
    """Other clauses for some arguments: those equal to `equal`, with `part` in them, and without `absent`."""

    say: tuple[str, ...]
    equal: Mapping[str, Scalar | tuple[Scalar, ...]] = {}
    part: Mapping[str, str] = {}
    absent: str = ""

    def fits(self, arguments: Arguments) -> bool:
        return (
            all(_plain(arguments.get(name)) == value for name, value in self.equal.items())
            and all(value in str(arguments.get(name)) for name, value in self.part.items())
            and self.absent not in arguments
        )


class FunctionTable(Record):
    """A function. In a clause, ``{parameter}`` is the argument as it is spoken of, ``<parameter>`` the word for it."""

    say: tuple[str, ...]
    cases: tuple[Case, ...] = ()
    """the first that fits replaces `say`"""
    words: Mapping[str, Mapping[str, str]] = {}
    """parameter to value to word; a value without one stands for itself"""
    arguments: Mapping[str, str | Draw] = {}
    """in order; a text names a source of the class"""
    once: bool = False
    """not if it is planned already"""
    implied: frozenset[str] = frozenset()
    """parameters that the clauses say in words, or nobody says"""
    vague: Mapping[str, tuple[str, str]] = {}
    """parameters left open in words of this function's own, each with the sentence that supplies it"""
    notes: Mapping[str, str] = {}
    """what the sketch notes of a call: name to parameter"""
    forgets: str = ""
    """the kind of thing that a later request cannot call "that" by what was said before this one"""

    def clauses(self, arguments: Arguments) -> tuple[str, ...]:
        say = next((case.say for case in self.cases if case.fits(arguments)), self.say)
        return tuple(_WORD.sub(lambda match: self._word(match[1], arguments[match[1]]), clause) for clause in say)

    def _word(self, parameter: str, value: Argument) -> str:
        words = self.words.get(parameter, {})
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        return " and ".join(words.get(str(part), str(part)) for part in parts)


class ClassTable(Record):
    """A class of simulators. chains: functions that belong together, in order, with blanks between them."""

    goals: tuple[str, ...]
    chains: tuple[str, ...]
    functions: Mapping[str, FunctionTable]
    state: Mapping[str, Draw] = {}
    """attributes of the initial state that every variant draws anew, in order"""
    lists: Mapping[str, tuple[str, ...]] = {}
    maps: Mapping[str, Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the table with its code."""

    table: FunctionTable
    sample: Sampler
    effect: Effect


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The functions of one class, the sequences that belong together, and how its initial state is varied."""

    functions: Mapping[str, Function]
    chains: tuple[tuple[str, ...], ...]
    vary: Callable[[dict[str, Any], Random], None]
    goals: tuple[str, ...]


def read_class(name: str) -> ClassTable:
    """The table of that name. Raises TableError."""
    return load(Path(__file__).with_name(f"{name}.toml"), ClassTable)


def toolbox(
    table: ClassTable,
    vary: Callable[[dict[str, Any], Random], None] | None = None,
    sources: Mapping[str, Source] | None = None,
    samplers: Mapping[str, Sampler] | None = None,
    effects: Mapping[str, Effect] | None = None,
) -> Toolbox:
    """The functions of a table with their code. samplers, effects: by function. vary: before `state` is drawn.

    Raises TableError where one names what the other lacks.
    """
    samplers, effects, sources = samplers or {}, effects or {}, sources or {}

    def vary_state(config: dict[str, Any], rng: Random) -> None:
        if vary is not None:
            vary(config, rng)
        config.update((name, draw.draw(rng)) for name, draw in table.state.items())

    strange = sorted({*samplers, *effects} - set(table.functions))
    if strange:
        raise TableError(f"there is code for {', '.join(strange)}, which the class's table does not hold")
    functions = {
        name: Function(entry, samplers.get(name) or _sampler(name, entry, sources), _effect(entry, effects.get(name)))
        for name, entry in table.functions.items()
    }
    return Toolbox(functions, tuple(tuple(chain.split()) for chain in table.chains), vary_state, table.goals)


def _sampler(name: str, entry: FunctionTable, sources: Mapping[str, Source]) -> Sampler:
    given: dict[str, Draw | Source] = {}
    for parameter, draw in entry.arguments.items():
        if isinstance(draw, str) and draw not in sources:
            raise TableError(f"{name}.arguments.{parameter}: the class has no source {draw!r}")
        given[parameter] = sources[draw] if isinstance(draw, str) else draw

    def sample(world: Sketch, rng: Random) -> Arguments | None:
        if entry.once and world.used(name):
            return None
        arguments: Arguments = {}
        for parameter, source in given.items():
            if isinstance(source, Draw):
                value = source.draw(rng, [s.argument(parameter) for s in world.steps if s.function == name])
            else:
                value = source(world, rng)
            if value is None:
                return None
            arguments[parameter] = value
        return arguments

    return sample


def _effect(entry: FunctionTable, code: Effect | None) -> Effect:
    def effect(world: Sketch, arguments: Arguments) -> None:
        world.notes.update((note, arguments[parameter]) for note, parameter in entry.notes.items())
        if code is not None:
            code(world, arguments)

    return effect


def _number(bounds: tuple[int, ...], rng: Random) -> int:
    return rng.randint(*bounds) if len(bounds) == 2 else rng.randrange(*bounds)


def _plain(value: Argument) -> Any:
    return tuple(value) if isinstance(value, list) else value
