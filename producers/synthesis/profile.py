"""Φ: the structure of a task, read off its calls and what they returned, and the distance between two structures.

The paper (arXiv 2606.19047) names what Φ holds but neither its extractor nor its distance; both are defined here. An
argument is fed by the latest earlier call whose result holds its value, else it is shared where an earlier call took
the same value under any name, else it is new. Turns without calls and the marks of a category (withheld tools, a
request that leaves something open) are no part of Φ: a variant gets its category by augmentation.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from producers.environments.calls import Call, Value

_TRIVIAL = ("", "True", "False", "None", "..", ".")
WEIGHTS = {"turns": 4, "calls": 6, "depth": 2, "topology": 2, "flow": 4, "coreference": 2}


@dataclass(frozen=True, slots=True)
class Profile:
    """Φ of one task.

    calls: calls per turn, of the turns that have any. edges: (feeding call, fed call, by result), by 0-based position
    in the task. depth: calls on the longest path. topology: ``none``, ``chain``, ``fan_out``, ``fan_in`` or ``mesh``.
    flow: arguments that are new, shared and fed. coreference: calls that take a value from an earlier turn.
    """

    calls: tuple[int, ...]
    edges: tuple[tuple[int, int, bool], ...]
    depth: int
    topology: str
    flow: tuple[int, int, int]
    coreference: int
    category: str

    @property
    def turns(self) -> int:
        return len(self.calls)


def profile(turns: Sequence[Sequence[Call]], results: Sequence[object], category: str) -> Profile:
    """Φ from the calls of each turn and the parsed result of every call, in order."""
    acting = [turn for turn in turns if turn]
    calls = [(number, call) for number, turn in enumerate(acting) for call in turn]
    held = [frozenset(_leaves(result)) for result in results]
    taken = [frozenset(_arguments(call)) for _, call in calls]
    edges: list[tuple[int, int, bool]] = []
    fed = shared = 0
    for index, values in enumerate(taken):
        for value in sorted(values):
            source = _latest(held, index, value)
            by_result = source is not None
            source = source if by_result else _latest(taken, index, value)
            if source is not None:
                edges.append((source, index, by_result))
                fed, shared = fed + by_result, shared + (not by_result)
    pairs = tuple(sorted(set(edges)))
    crossing = {target for source, target, _ in pairs if calls[source][0] < calls[target][0]}
    total = sum(map(len, taken))
    return Profile(
        calls=tuple(map(len, acting)),
        edges=pairs,
        depth=_depth(pairs, len(calls)),
        topology=_topology(pairs),
        flow=(total - shared - fed, shared, fed),
        coreference=len(crossing),
        category=category,
    )


def distance(left: Profile, right: Profile) -> Fraction:
    """How far apart two structures are: 0 for equal ones, at most 1; 1 where the categories differ.

    The weighted mean (`WEIGHTS`) of: turns and depth, each as difference over the larger; calls per turn, as the summed
    differences over the larger total; topology, 0 or 1; flow, as the total variation distance of its shares;
    coreference, as the difference of its shares of all calls. Exact, so that a bound decides the same everywhere.
    """
    if left.category != right.category:
        return Fraction(1)
    parts = {
        "turns": _relative(left.turns, right.turns),
        "calls": _spread(left.calls, right.calls),
        "depth": _relative(left.depth, right.depth),
        "topology": Fraction(left.topology != right.topology),
        "flow": sum((abs(a - b) for a, b in zip(_shares(left.flow), _shares(right.flow), strict=True)), Fraction(0))
        / 2,
        "coreference": abs(_share(left) - _share(right)),
    }
    weight = sum(WEIGHTS.values())
    return sum((parts[name] * WEIGHTS[name] for name in parts), Fraction(0)) / weight


def parsed(text: str) -> object:
    """A result's value: JSON where it is JSON, a quoted workbench name without its quotes, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" and text.count("'") == 2 else text


def _latest(sets: Sequence[frozenset[str]], before: int, value: str) -> int | None:
    return next((index for index in range(before - 1, -1, -1) if index < len(sets) and value in sets[index]), None)


def _arguments(call: Call) -> Iterator[str]:
    for value in (*call.args, *(value for _, value in call.kwargs)):
        yield from _leaves(value)


def _leaves(value: "Value | object") -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif not isinstance(value, bool) and value is not None:
        text = f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else str(value)
        if text not in _TRIVIAL:
            yield text


def _depth(edges: Sequence[tuple[int, int, bool]], calls: int) -> int:
    longest = [1] * calls
    for source, target, _ in sorted(edges, key=lambda edge: edge[1]):
        longest[target] = max(longest[target], longest[source] + 1)
    return max(longest, default=0)


def _topology(edges: Sequence[tuple[int, int, bool]]) -> str:
    if not edges:
        return "none"
    links = {(source, target) for source, target, _ in edges}
    fan_out = len({source for source, _ in links}) < len(links)
    fan_in = len({target for _, target in links}) < len(links)
    return {(False, False): "chain", (True, False): "fan_out", (False, True): "fan_in", (True, True): "mesh"}[
        (fan_out, fan_in)
    ]


def _relative(left: int, right: int) -> Fraction:
    return Fraction(abs(left - right), max(left, right, 1))


def _spread(left: Sequence[int], right: Sequence[int]) -> Fraction:
    length = max(len(left), len(right))
    a, b = [*left, *[0] * (length - len(left))], [*right, *[0] * (length - len(right))]
    return min(Fraction(1), Fraction(sum(abs(x - y) for x, y in zip(a, b, strict=True)), max(sum(a), sum(b), 1)))


def _shares(flow: tuple[int, int, int]) -> tuple[Fraction, ...]:
    total = sum(flow)
    return tuple(Fraction(part, total) if total else Fraction(0) for part in flow)


def _share(of: Profile) -> Fraction:
    return Fraction(of.coreference, max(sum(of.calls), 1))
