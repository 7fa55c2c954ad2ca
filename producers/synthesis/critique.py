"""The gates every variant passes, whoever invented it, then the backend's judge.

A gate is a fact about the task that can be checked: it re-executes in a fresh simulator through the task source, offers
what its calls need, stays within the paper's sizes, gives no names away, has its seed's structure and is new.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from producers.environments.calls import Call, Value, parse_call
from producers.environments.errors import CallError
from producers.environments.port import Environment, TaskSource
from producers.synthesis.backend import Backend, JudgeRequest
from producers.synthesis.errors import FAULTS
from producers.synthesis.profile import Profile, distance, parsed, profile
from schemas.identity import content_digest
from schemas.task import TaskDefinition, Turn

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
        for gate, check in self._gates():
            reason = check(definition)
            if reason is not None:
                return GateFault(gate, reason)
        return None

    def complaint(self, request: JudgeRequest) -> str | None:
        """What the judge objects to, one sentence, or None."""
        for opinion in self.backend.judge(request):
            if not opinion.holds:
                return f"{opinion.criterion.value}: {opinion.reason}"
        return None

    def _gates(self) -> Sequence[tuple[Gate, Callable[[TaskDefinition], str | None]]]:
        return (
            (Gate.REQUESTS, requests_fault),
            (Gate.LIMITS, limits_fault),
            (Gate.LEAKS, self._leaks),
            (Gate.AVAILABILITY, lambda definition: availability_fault(definition, self.source)),
            (Gate.REPLAY, lambda definition: replay_fault(definition, self.source)),
            (Gate.PROFILE, self._profile),
            (Gate.DUPLICATE, lambda definition: duplicate_fault(definition, self.known)),
        )

    def _leaks(self, definition: TaskDefinition) -> str | None:
        words = self.backend.leaks(definition)
        return f"a request gives names away: {', '.join(words)[:80]}" if words else None

    def _profile(self, definition: TaskDefinition) -> str | None:
        found = distance(self.seed, profile_of(definition, self.source, self.seed.category))
        return structure_fault(found, self.bound)


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


def availability_fault(definition: TaskDefinition, source: TaskSource) -> str | None:
    """Every ground-truth call names a tool that its turn offers."""
    environment = _reset(definition, source)
    if isinstance(environment, str):
        return environment
    for number, turn in enumerate(definition.turns):
        offered = {tool.name for tool in environment.tools()}
        for text in turn.ground_truth:
            if parse_call(text).name not in offered:
                return f"turn {number} calls {parse_call(text).name}, which it does not offer"
            environment.call(text)
        try:
            environment.judge()
        except FAULTS as error:
            return str(error)
    return None


def replay_fault(definition: TaskDefinition, source: TaskSource) -> str | None:
    """The ground truth passes its own judge, turn by turn, in a fresh environment, and no call of it fails."""
    environment = _reset(definition, source)
    if isinstance(environment, str):
        return environment
    for number, turn in enumerate(definition.turns):
        for text in turn.ground_truth:
            if not environment.call(text).ok:
                return f"turn {number}: {parse_call(text).name} fails"
        try:
            passed = environment.judge()
        except FAULTS as error:
            return str(error)
        if not passed:
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
    calls = [[parse_call(text) for text in turn.ground_truth] for turn in definition.turns]
    environment = source.reset(definition)
    results = [parsed(result) for turn in definition.turns for result in _played(environment, turn)]
    return profile(calls, results, category)


def calls_of(turns: Sequence[Sequence[str]]) -> list[list[Call]]:
    """Parsed calls, turn by turn."""
    return [[parse_call(text) for text in turn] for turn in turns]


def _played(environment: Environment, turn: Turn) -> list[str]:
    results = [environment.call(text).text for text in turn.ground_truth]
    environment.judge()
    return results


def _reset(definition: TaskDefinition, source: TaskSource) -> Environment | str:
    try:
        return source.reset(definition)
    except FAULTS as error:
        return str(error)


def _oversized(value: Value) -> bool:
    if isinstance(value, str):
        return len(value) > STRING_LIMIT
    if isinstance(value, list | tuple):
        return len(value) > LIST_LIMIT or any(_oversized(item) for item in value)
    if isinstance(value, dict):
        return any(_oversized(item) for item in value.values())
    return False
