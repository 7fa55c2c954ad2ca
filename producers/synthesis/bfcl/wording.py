"""Words a BFCL plan: one narrative, one request per turn, clauses from each function's templates.

An argument that an earlier call supplies is spoken of as "that ..."; a literal is named in full, unless it is what was
spoken of last. The whole conversation is worded in one go from one random stream, so that leaving one argument open
changes nothing else.
"""

from collections.abc import Mapping, Sequence
from random import Random

from producers.environments.calls import Value, parse_call
from producers.synthesis.backend import Gap, RewriteRequest, Script, Slot
from producers.synthesis.bfcl.toolboxes import function_of
from producers.synthesis.bfcl.words import KINDS, PHRASES, PLAIN, SENTENCES
from producers.synthesis.plan import Ref, Step

_SHORTEN = 0.35


def write(request: RewriteRequest) -> Script:
    """The user's side of the plan."""
    return Script(_requests(request, None))


def gaps(request: RewriteRequest, script: Script) -> Sequence[Gap]:
    """Arguments that may stay open: named once, nowhere before and not again in the same request."""
    return [gap for slot in _slots(request) if (gap := _gap(request, script, slot)) is not None]


def spoken(value: Value) -> str:
    """A value as a person writes it: whole numbers without decimals, lists joined by ``and``."""
    if isinstance(value, list | tuple):
        items = [spoken(item) for item in value]
        return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _slots(request: RewriteRequest) -> list[Slot]:
    plan = request.execution.plan
    return [
        (turn, index, name)
        for turn, steps in enumerate(plan.turns)
        for index, step in enumerate(steps)
        for name, value in step.arguments
        if not step.refs() and _openings(step, name)[0] and name not in function_of(step.function).table.implied
        if not isinstance(value, Ref | dict)
    ]


def _gap(request: RewriteRequest, script: Script, slot: Slot) -> Gap | None:
    turn, index, name = slot
    step = request.execution.plan.turns[turn][index]
    value = spoken(step.argument(name))  # type: ignore[arg-type]
    opened = _requests(request, slot)[turn]
    earlier = " ".join((*script.requests[:turn], opened))
    if opened == script.requests[turn] or value in earlier:
        return None
    return Gap(turn, opened, _openings(step, name)[1].format(_quoted(name, step.argument(name))))


def _openings(step: Step, name: str) -> tuple[str, str]:
    """How an argument is left open, and the sentence that supplies it; empty where it cannot be."""
    phrase = PHRASES.get(name, PLAIN)
    return function_of(step.function).table.vague.get(name, (phrase.vague, phrase.supply))


def _quoted(name: str, value: object) -> str:
    """A literal as the supplying sentence takes it: the items of a list in quotes of their own, if it is of strings."""
    literal = PHRASES.get(name, PLAIN).literal if isinstance(value, list) else "{}"
    return _literal(literal, value)  # type: ignore[arg-type]


def _literal(form: str, value: Value) -> str:
    if isinstance(value, list | tuple) and form.startswith("'"):
        return spoken([form.format(spoken(item)) for item in value])
    quotes = isinstance(value, str) or form != "'{}'"
    return form.format(spoken(value)) if quotes else spoken(value)


def _requests(request: RewriteRequest, open_slot: Slot | None) -> tuple[str, ...]:
    """Walks the plan once; `last` holds the value spoken of last, per kind of thing."""
    plan, calls = request.execution.plan, request.execution.calls
    rng = Random(f"{request.seed} {request.refinement}")
    last: dict[str, Value] = {}
    made = []
    openers = rng.sample(SENTENCES["next"], len(SENTENCES["next"]))
    for turn, steps in enumerate(plan.turns):
        clauses = []
        for index, step in enumerate(steps):
            values = dict(parse_call(calls[turn][index]).kwargs)
            left = open_slot[2] if open_slot is not None and open_slot[:2] == (turn, index) else None
            clauses.append(_clause(step, values, last, left, rng))
        opener = _opener(openers, turn, len(plan.turns), rng)
        made.append(_request(clauses, plan.goal, opener, rng))
    return tuple(made)


def _clause(step: Step, values: Mapping[str, Value], last: dict[str, Value], left: str | None, rng: Random) -> str:
    arguments = dict(step.arguments)
    table = function_of(step.function).table
    wording = rng.choice(table.clauses(arguments))
    shown = {}
    for name, value in values.items():
        shorten = rng.random() < _SHORTEN
        shown[name] = _shown(name, arguments[name], value, last, shorten)
        if name == left:
            shown[name] = _openings(step, name)[0]
        kind = KINDS.get(name)
        if kind is not None:
            last[kind] = value
    last.pop(table.forgets, None)
    return wording.format_map(shown)


def _shown(name: str, planned: object, value: Value, last: Mapping[str, Value], shorten: bool) -> str:
    phrase = PHRASES.get(name, PLAIN)
    if isinstance(planned, Ref) or (isinstance(planned, tuple) and planned):
        return phrase.back
    kind = KINDS.get(name)
    if kind is not None and shorten and last.get(kind) == value:
        return phrase.back
    return _literal(phrase.literal, value)


def _opener(openers: Sequence[str], turn: int, turns: int, rng: Random) -> str:
    first, final = rng.choice(SENTENCES["first"]), rng.choice(SENTENCES["last"])
    if turn == 0:
        return first
    return final if turn == turns - 1 else openers[turn % len(openers)]


def _request(clauses: Sequence[str], goal: str, opener: str, rng: Random) -> str:
    text = clauses[0] + "".join(rng.choice(SENTENCES["join"]).format(clause) for clause in clauses[1:])
    asked = rng.choice(SENTENCES["ask"]).format(text)
    begun = opener.endswith(".")
    return f"{opener.format(goal=goal)} {asked[0].upper() if begun else asked[0]}{asked[1:]}"
