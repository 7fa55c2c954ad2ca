"""The port between the pipeline and what invents: rules that search, or a language model.

The pipeline owns order, budgets, randomness and every hard gate; a backend proposes, words and judges. It is given a
seed of 63 bits with each request and must be a function of the request. It raises StageError where it has no answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from producers.synthesis.execute import Execution, Patch
from producers.synthesis.plan import Plan
from producers.synthesis.profile import Profile
from schemas.task import TaskDefinition

Slot = tuple[int, int, str]
"""An argument of a plan: turn, call within the turn, parameter."""


class Criterion(StrEnum):
    """What a judge is asked of a variant."""

    MATCHES = "request_matches_calls"
    CONSISTENT = "state_consistent"
    COHERENT = "coherent_across_turns"
    NATURAL = "natural"
    AMBIGUITY = "ambiguity_well_formed"


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's answer to one criterion; reason is one sentence, empty where it holds."""

    criterion: Criterion
    holds: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """blocked: functions of this seed that failed before. category: the world to plan in, see `Plan`."""

    task: TaskDefinition
    profile: Profile
    category: str
    blocked: frozenset[str]
    seed: int


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """A step (0-based in the plan) that failed with this result."""

    plan: Plan
    step: int
    call: str
    result: str


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """refinement: 0 for the first text, then 1, 2 ...; complaint: what the judge found in the text before."""

    execution: Execution
    seed: int
    refinement: int = 0
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """The user's side of a base task: one request per turn, all written in one go."""

    requests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """A turn's request with one argument left open, and the request that supplies it afterwards."""

    turn: int
    request: str
    supply: str


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """A whole variant, and the parsed execution behind it."""

    definition: TaskDefinition
    execution: Execution


class Backend(Protocol):
    """`name` is the backbone that events record; `tokens` of an answer are 0 for rules."""

    @property
    def name(self) -> str: ...

    def propose(self, request: PlanRequest) -> Plan: ...

    def patch(self, request: PatchRequest) -> Patch | None:
        """The smallest change of the initial state that may make the step work, or None."""
        ...

    def rewrite(self, request: RewriteRequest) -> Script: ...

    def gaps(self, request: RewriteRequest, script: Script) -> Sequence[Gap]:
        """Every way to leave one argument open in a deliberately ambiguous request."""
        ...

    def leaks(self, definition: TaskDefinition) -> Sequence[str]:
        """Names of functions or parameters that a request gives away."""
        ...

    def judge(self, request: JudgeRequest) -> Sequence[Opinion]: ...
