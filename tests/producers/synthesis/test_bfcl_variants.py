"""Variants of BFCL's train split: yield, the package's own checker, names, grounding and structure."""

from collections import Counter
from functools import cache

from producers.environments.bfcl import BfclSource
from producers.environments.calls import parse_call
from producers.environments.judge import score
from producers.synthesis.bfcl.toolboxes import TOOLBOXES
from producers.synthesis.judging import leaked
from producers.synthesis.pipeline import SeedTask, SynthesisOutcome, synthesise
from producers.synthesis.rules_backend import RulesBackend
from schemas.rules import SynthesisRules
from schemas.task import Category, TaskDefinition
from tests.task_files import first_failed

SOURCE = BfclSource()
RULES = SynthesisRules()


@cache
def outcomes() -> tuple[tuple[TaskDefinition, SynthesisOutcome], ...]:
    seeds = [task for number, task in enumerate(SOURCE.tasks("train")) if number % 5 == 0]
    backend = RulesBackend()
    return tuple(
        (task, synthesise(SeedTask(f"seed-{task.task}", task, 1), SOURCE, (), RULES, backend)) for task in seeds
    )


def variants() -> list[tuple[TaskDefinition, TaskDefinition]]:
    return [(seed, variant) for seed, outcome in outcomes() for variant in outcome.variants]


def test_more_than_half_of_the_seeds_of_every_category_give_a_variant() -> None:
    given = Counter(seed.category for seed, outcome in outcomes() if outcome.variants)
    asked = Counter(seed.category for seed, _ in outcomes())
    assert set(asked) == {category.value for category in Category}
    assert all(2 * given[category] > asked[category] for category in asked)


def test_every_variant_passes_the_packages_own_checker_with_its_own_ground_truth() -> None:
    assert len(variants()) >= 40
    for _, variant in variants():
        truth = [turn.ground_truth for turn in variant.turns]
        assert first_failed(variant, truth) is None, variant
        assert all(score(SOURCE.reset(variant), variant.turns_total, truth))


def test_no_request_gives_a_function_or_a_parameter_away() -> None:
    for _, variant in variants():
        names = {name for owner in variant.classes for name in TOOLBOXES[owner].functions}
        calls = [parse_call(text) for turn in variant.turns for text in turn.ground_truth]
        content = " ".join(str(value) for call in calls for _, value in call.kwargs)
        for turn in variant.turns:
            for request in turn.requests:
                assert not [word for word in leaked(request, names) if word in names or word not in content], request


def test_categories_have_their_marks() -> None:
    for _, variant in variants():
        empty = [number for number, turn in enumerate(variant.turns) if not turn.ground_truth]
        silent = [number for number, turn in enumerate(variant.turns) if not turn.requests]
        if variant.category == Category.MISSING_FUNCTION:
            assert len(empty) == 1
            assert silent == [empty[0] + 1]
        elif variant.category == Category.MISSING_PARAMETER:
            assert len(empty) == 1
            assert silent == []
        else:
            assert empty == silent == []
