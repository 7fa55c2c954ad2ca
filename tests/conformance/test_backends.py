"""What the pipeline relies on in the rules of every task source: variants that pass, structured as their seeds are."""

from fractions import Fraction
from functools import cache
from itertools import islice
from typing import NamedTuple

import pytest

from producers.environments.bfcl import BfclSource
from producers.environments.judge import score
from producers.environments.port import TaskSource
from producers.environments.workbench.source import WorkbenchSource
from producers.synthesis.backend import Backend
from producers.synthesis.bfcl.backend import BfclBackend
from producers.synthesis.critique import profile_of
from producers.synthesis.pipeline import SeedTask, SynthesisOutcome, synthesise
from producers.synthesis.profile import distance
from producers.synthesis.rules_backend import RulesBackend
from producers.synthesis.workbench import WorkbenchBackend
from schemas.rules import SynthesisRules
from schemas.task import TaskDefinition

RULES = SynthesisRules()


class Case(NamedTuple):
    """A backend and a source that it has rules for. every: of its tasks, each so-many-th is a seed."""

    backend: type[Backend]
    source: TaskSource
    every: int

    def synthesise(self, task: TaskDefinition, seed: str = "") -> SynthesisOutcome:
        return synthesise(SeedTask(seed or task.task, task, 1), self.source, (), RULES, self.backend())


BFCL, BENCH = BfclSource(), WorkbenchSource(train=40, heldout=0)
CASES = {
    "bfcl": Case(BfclBackend, BFCL, 10),
    "workbench": Case(WorkbenchBackend, BENCH, 2),
    "rules-bfcl": Case(RulesBackend, BFCL, 80),
    "rules-workbench": Case(RulesBackend, BENCH, 10),
}


@cache
def variants(name: str) -> tuple[tuple[TaskDefinition, TaskDefinition], ...]:
    """Seeds with their variants."""
    case = CASES[name]
    seeds = islice(case.source.tasks("train"), 0, None, case.every)
    return tuple((task, variant) for task in seeds for variant in case.synthesise(task).variants)


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_more_than_half_of_the_seeds_give_a_variant(name: str) -> None:
    case = CASES[name]
    seeds = len(list(islice(case.source.tasks("train"), 0, None, case.every)))
    assert len({seed.task for seed, _ in variants(name)}) > seeds / 2


def test_a_variant_names_its_parent_and_keeps_its_category_classes_scenario_and_source(name: str) -> None:
    for seed, variant in variants(name):
        assert variant.parent == seed.task
        for field in ("category", "classes", "scenario", "source"):
            assert getattr(variant, field) == getattr(seed, field), field
        assert (variant.initial_state, variant.turns) != (seed.initial_state, seed.turns)


def test_every_variant_passes_its_own_judge(name: str) -> None:
    source = CASES[name].source
    for _, variant in variants(name):
        truth = [turn.ground_truth for turn in variant.turns]
        assert all(score(source.reset(variant), variant.turns_total, truth)), variant


def test_every_structure_is_within_the_bound_of_its_seeds(name: str) -> None:
    source, bound = CASES[name].source, Fraction(RULES.profile_distance)
    for seed, variant in variants(name):
        apart = distance(profile_of(seed, source, seed.category), profile_of(variant, source, seed.category))
        assert apart <= bound


def test_variants_differ_from_one_another_in_id_and_content(name: str) -> None:
    made = [variant for _, variant in variants(name)]
    assert len({variant.task for variant in made}) == len(made)
    assert len({(variant.initial_state, variant.turns) for variant in made}) == len(made)


def test_variants_of_variants_can_be_made(name: str) -> None:
    parent = variants(name)[0][1]
    outcome = CASES[name].synthesise(parent, "second")
    assert outcome.variants
    assert all(variant.parent == parent.task for variant in outcome.variants)


def test_a_seed_gives_the_same_variants_again_and_another_seed_others(name: str) -> None:
    case, (task, _) = CASES[name], variants(name)[0]
    once, again, other = (case.synthesise(task, seed) for seed in ("one", "one", "two"))
    assert once == again
    assert {variant.task for variant in once.variants} & {variant.task for variant in other.variants} == set()


def test_a_backend_gives_no_function_or_parameter_of_its_own_variants_away(name: str) -> None:
    backend = CASES[name].backend()
    assert [variant.task for _, variant in variants(name) if backend.leaks(variant)] == []
