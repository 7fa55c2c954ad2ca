"""The gates every variant passes, whoever invented it, then the backend's judge.

A gate is a fact about the task that can be checked: it re-executes in a fresh simulator through the task source, offers
what its calls need, stays within the paper's sizes, gives no names away, has its seed's structure and is new.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from producers.environments.calls import Call, Value, parse_call
from producers.environments.errors import CallError, EnvironmentFault
from producers.environments.port import CallResult, TaskSource
from producers.synthesis.backend import Backend, JudgeRequest
from producers.synthesis.errors import FAULTS
from producers.synthesis.profile import Profile, distance, parsed, profile
from schemas.identity import content_digest
from schemas.task import TaskDefinition

STRING_LIMIT = 200
LIST_LIMIT = 5


class Gate(StrEnum):
    """In the order in which they are tried; the first that fails gives the reason."""

    REQUESTS = "requests"
    LIMITS = "limits"
    LEAKS = "leaks"
    AVAILABILITY = "availability"
    REPLAY = "replay"
    PROFILE = "profile"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class GateFault:
    """A gate that did not open. reason: one sentence."""

    gate: Gate
    reason: str


@dataclass(frozen=True, slots=True)
class Critic:
    """known: content digests of the pool's members and of the seed. bound: on the distance from the seed's Φ."""

    source: TaskSource
    backend: Backend
    seed: Profile
    bound: Fraction
    known: frozenset[str]

    def fault(self, definition: TaskDefinition) -> GateFault | None:
        """The first gate that does not open, or None."""
        return next((GateFault(gate, reason) for gate, reason in self._gates(definition) if reason), None)

    def complaint(self, request: JudgeRequest) -> str | None:
        """What the judge objects to, one sentence, or None."""
        for opinion in self.backend.judge(request):
            if not opinion.holds:
                return f"{opinion.criterion.value}: {opinion.reason}"
        return None

    def _gates(self, definition: TaskDefinition) -> Iterator[tuple[Gate, str | None]]:
        yield Gate.REQUESTS, requests_fault(definition)
        yield Gate.LIMITS, limits_fault(definition)
        yield Gate.LEAKS, self._leaks(definition)
        played, broken = play(definition, self.source)
        yield Gate.AVAILABILITY, availability_fault(definition, played) or broken
        yield Gate.REPLAY, replay_fault(definition, played)
        calls = calls_of([turn.ground_truth for turn in definition.turns])
        found = _profile(calls, played, self.seed.category)
        yield Gate.PROFILE, structure_fault(distance(self.seed, found), self.bound)
        yield Gate.DUPLICATE, duplicate_fault(definition, self.known)

    def _leaks(self, definition: TaskDefinition) -> str | None:
        words = self.backend.leaks(definition)
        return f"a request gives names away: {', '.join(words)[:80]}" if words else None


def requests_fault(definition: TaskDefinition) -> str | None:
    """Exactly one request with content per turn, save the turn that only reveals what was withheld before."""
    for before, turn in zip((None, *definition.turns), definition.turns, strict=False):
        reveals = before is not None and not before.ground_truth and set(before.withheld) - set(turn.withheld)
        if not turn.requests and reveals:
            continue
        if len(turn.requests) != 1 or not turn.requests[0].strip():
            return "a turn has not exactly one request with content"
    return None


def limits_fault(definition: TaskDefinition) -> str | None:
    """Strings of at most 200 characters and lists of at most 5 items in the arguments of every call."""
    for turn in definition.turns:
        for text in turn.ground_truth:
            try:
                call = parse_call(text)
            except CallError as error:
                return f"a call cannot be read: {error}"
            if any(_oversized(value) for value in (*call.args, *(value for _, value in call.kwargs))):
                return f"an argument of {call.name} is too long"
    return None


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """A turn whose ground truth was called. passed: its judge's verdict, None where the judge gave none."""

    offered: frozenset[str]
    results: tuple[CallResult, ...]
    passed: bool | None = None


def play(definition: TaskDefinition, source: TaskSource) -> tuple[list[PlayedTurn], str]:
    """The ground truth in a fresh environment: the turns as far as they ran, and why they went no further."""
    turns: list[PlayedTurn] = []
    try:
        environment = source.reset(definition)
        for turn in definition.turns:
            offered = frozenset(tool.name for tool in environment.tools())
            turns.append(PlayedTurn(offered, tuple(environment.call(text) for text in turn.ground_truth)))
            turns[-1] = replace(turns[-1], passed=environment.judge())
    except FAULTS as error:
        return turns, str(error)
    return turns, ""


def availability_fault(definition: TaskDefinition, played: Sequence[PlayedTurn]) -> str | None:
    """Every ground-truth call names a tool that its turn offers."""
    for number, (turn, run) in enumerate(zip(definition.turns, played, strict=False)):
        for text in turn.ground_truth:
            if parse_call(text).name not in run.offered:
                return f"turn {number} calls {parse_call(text).name}, which it does not offer"
    return None


def replay_fault(definition: TaskDefinition, played: Sequence[PlayedTurn]) -> str | None:
    """The ground truth passes its own judge, turn by turn, and no call of it fails."""
    for number, (turn, run) in enumerate(zip(definition.turns, played, strict=False)):
        for text, result in zip(turn.ground_truth, run.results, strict=True):
            if not result.ok:
                return f"turn {number}: {parse_call(text).name} fails"
        if not run.passed:
            return f"turn {number} does not pass its own judge"
    return None


def structure_fault(found: Fraction, bound: Fraction) -> str | None:
    """Whether a distance is beyond the bound."""
    return f"its structure is {float(found):.2f} from the seed's" if found > bound else None


def duplicate_fault(definition: TaskDefinition, known: Collection[str]) -> str | None:
    """Whether the pool, or the seed itself, has this very content."""
    return "the pool has this task already" if content_digest(definition) in known else None


def profile_of(definition: TaskDefinition, source: TaskSource, category: str) -> Profile:
    """Φ of a task by running its ground truth. Raises one of `FAULTS` for one that does not run."""
    calls = calls_of([turn.ground_truth for turn in definition.turns])
    played, broken = play(definition, source)
    if broken:
        raise EnvironmentFault(broken)
    return _profile(calls, played, category)


def _profile(calls: Sequence[Sequence[Call]], played: Sequence[PlayedTurn], category: str) -> Profile:
    return profile(calls, [parsed(result.text) for run in played for result in run.results], category)


def calls_of(turns: Sequence[Sequence[str]]) -> list[list[Call]]:
    """Parsed calls, turn by turn."""
    return [[parse_call(text) for text in turn] for turn in turns]


def _oversized(value: Value) -> bool:
    if isinstance(value, str):
        return len(value) > STRING_LIMIT
    if isinstance(value, list | tuple):
        return len(value) > LIST_LIMIT or any(_oversized(item) for item in value)
    if isinstance(value, dict):
        return any(_oversized(item) for item in value.values())
    return False
