"""Each gate refuses a variant made bad on purpose, and a good one passes them all."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from producers.environments.bfcl import BfclSource
from producers.synthesis.backend import Criterion
from producers.synthesis.critique import Critic, Gate, profile_of
from producers.synthesis.pipeline import SeedTask, synthesise
from producers.synthesis.rules_backend import RulesBackend
from schemas.identity import content_digest
from schemas.rules import SynthesisRules
from schemas.task import TaskDefinition, Turn

SOURCE = BfclSource()
BACKEND = RulesBackend()
SEED = next(iter(SOURCE.tasks("train")))
VARIANT = synthesise(SeedTask("seed", SEED, 1), SOURCE, (), SynthesisRules(), BACKEND).variants[0]
SHAPE = profile_of(SEED, SOURCE, SEED.category)


def critic(known: frozenset[str] = frozenset(), bound: Fraction = Fraction(35, 100)) -> Critic:
    return Critic(SOURCE, BACKEND, SHAPE, bound, known)


def with_turn(turn: Turn, at: int = 0) -> TaskDefinition:
    turns = list(VARIANT.turns)
    turns[at] = turn
    return replace(VARIANT, turns=tuple(turns))


def first(**changes: tuple[str, ...]) -> TaskDefinition:
    return with_turn(replace(VARIANT.turns[0], **changes))


def test_a_verified_variant_passes_every_gate() -> None:
    assert critic().fault(VARIANT) is None


@pytest.mark.parametrize(
    ("gate", "broken"),
    [
        (Gate.REQUESTS, lambda: first(requests=())),
        (Gate.REQUESTS, lambda: first(requests=("  ",))),
        (Gate.REQUESTS, lambda: first(requests=("Please look.", "And look again."))),
        (Gate.LIMITS, lambda: first(ground_truth=(f"post_tweet(content='{'x' * 201}')",))),
        (
            Gate.LIMITS,
            lambda: first(ground_truth=("post_tweet(content='x', tags=['#a', '#b', '#c', '#d', '#e', '#f'])",)),
        ),
        (Gate.LIMITS, lambda: first(ground_truth=("no call at all",))),
        (Gate.LEAKS, lambda: first(requests=("Please sort the lines for me.",))),
        (Gate.LEAKS, lambda: first(requests=("Please set file_name as I told you.",))),
        (
            Gate.AVAILABILITY,
            lambda: first(withheld=tuple({text.split("(")[0] for text in VARIANT.turns[0].ground_truth})),
        ),
        (Gate.AVAILABILITY, lambda: first(ground_truth=("fly(to='moon')",))),
        (Gate.REPLAY, lambda: first(ground_truth=("cat(file_name='nowhere.txt')",))),
        (Gate.AVAILABILITY, lambda: replace(VARIANT, initial_state="not json")),
        (Gate.PROFILE, lambda: replace(VARIANT, turns=(Turn(("Please look around.",), ("pwd()",)),))),
    ],
)
def test_a_gate_refuses(gate: Gate, broken: Callable[[], TaskDefinition]) -> None:
    fault = critic().fault(broken())
    assert fault is not None
    assert fault.gate is gate
    assert fault.reason


def test_a_task_that_the_pool_has_is_a_duplicate_whatever_its_id() -> None:
    fault = critic(frozenset({content_digest(VARIANT)})).fault(replace(VARIANT, task="another", parent=None))
    assert fault is not None
    assert fault.gate is Gate.DUPLICATE


def test_a_bound_of_zero_refuses_any_other_structure() -> None:
    far = replace(VARIANT, turns=VARIANT.turns[:-1])
    fault = critic(bound=Fraction(0)).fault(far)
    assert fault is not None
    assert fault.gate is Gate.PROFILE


def test_a_turn_that_only_reveals_a_tool_needs_no_request() -> None:
    turn = VARIANT.turns[0]
    name = turn.ground_truth[0].split("(")[0]
    hidden = replace(turn, ground_truth=(), withheld=(name,))
    revealed = replace(turn, requests=(), withheld=())
    made = replace(VARIANT, turns=(hidden, revealed, *VARIANT.turns[1:]))
    assert critic().fault(made) is None


def test_the_judge_asks_all_five_criteria() -> None:
    assert len(Criterion) == 5
