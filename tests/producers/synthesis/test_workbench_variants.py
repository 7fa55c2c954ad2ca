"""Variants of workbench tasks: nearly every seed gives some, in the same closed language, at the same depth."""

from functools import cache

from producers.environments.calls import parse_call
from producers.environments.workbench.generate import split_of
from producers.environments.workbench.language import split
from producers.environments.workbench.source import WorkbenchSource
from producers.environments.workbench.vocabulary import words
from producers.synthesis.pipeline import SeedTask, SynthesisOutcome, synthesise
from producers.synthesis.rules_backend import RulesBackend
from schemas.rules import SynthesisRules
from schemas.task import Category, TaskDefinition

SOURCE = WorkbenchSource(train=80, heldout=400)
RULES = SynthesisRules()


@cache
def outcomes() -> tuple[tuple[TaskDefinition, SynthesisOutcome], ...]:
    backend = RulesBackend()
    return tuple(
        (task, synthesise(SeedTask(f"seed-{task.task}", task, 1), SOURCE, (), RULES, backend))
        for task in SOURCE.tasks("train")
    )


def variants() -> list[tuple[TaskDefinition, TaskDefinition]]:
    return [(seed, variant) for seed, outcome in outcomes() for variant in outcome.variants]


def test_nearly_every_seed_gives_all_its_variants() -> None:
    assert len(variants()) >= 0.95 * len(outcomes()) * RULES.variants_per_seed


def test_variants_speak_the_closed_vocabulary() -> None:
    known = set(words())
    for _, variant in variants():
        for turn in variant.turns:
            for text in (*turn.requests, *turn.ground_truth):
                assert set(split(text)) <= known, text


def test_a_variant_has_its_seeds_turns_calls_category_and_classes() -> None:
    for seed, variant in variants():
        assert 2 <= variant.turns_total <= 4 or variant.turns_total == seed.turns_total
        assert (variant.turns_total, variant.category, variant.classes) == (
            seed.turns_total,
            seed.category,
            seed.classes,
        )
        assert sum(len(turn.ground_truth) for turn in variant.turns) == sum(
            len(turn.ground_truth) for turn in seed.turns
        )


def test_a_variant_stays_on_its_seeds_side_of_the_split_and_meets_no_held_out_task() -> None:
    held_out = {(task.initial_state, task.turns) for task in SOURCE.tasks("heldout")}
    for seed, variant in variants():
        assert split_of(variant.initial_state) == split_of(seed.initial_state)
        assert (variant.initial_state, variant.turns) not in held_out


def test_a_withheld_tool_is_missing_only_where_it_is_needed() -> None:
    for _, variant in variants():
        marked = [turn for turn in variant.turns if turn.withheld]
        if variant.category != Category.MISSING_FUNCTION:
            assert marked == []
            continue
        assert len(marked) == 1
        after = variant.turns[variant.turns.index(marked[0]) + 1]
        assert {parse_call(text).name for text in after.ground_truth} >= set(marked[0].withheld)
