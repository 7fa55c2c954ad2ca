"""Which tasks of a sealed step become boundary seeds. Pure.

Boundary tasks trained on in this step and not in cooldown, bucketed by category; each bucket ranked by φ or variance,
highest first, ties by task id; at most the quota of each. `random` is the ablation: as many of each bucket, drawn by a
hash from all tasks measured in this step; `static` asks for none.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm

from schemas.identity import digest, seed_id
from schemas.rollouts import Purpose
from schemas.rules import Rules
from schemas.seals import SealedGroup, SelectedSeed
from streams.measure.exact import phi_of, pooled, text_of


def select(
    groups: Iterable[SealedGroup], rules: Rules, epoch: int, step: int, last: Mapping[str, int]
) -> tuple[SelectedSeed, ...]:
    """The seeds of a step in order: by category, then rank in the bucket. last: task to the step it was last a seed."""
    if rules.curriculum == "static":
        return ()
    # But for the ablation's draw, only boundary tasks count; most of a step's tasks are in other zones.
    asked = groups if rules.curriculum == "random" else [group for group in groups if group.boundary]
    free = [group for group in asked if _measured(group) and not _cooling(group.task, rules, step, last)]
    chosen: list[SealedGroup] = []
    for category in sorted({group.category for group in free}):
        chosen += _bucket([group for group in free if group.category == category], rules, step)
    return tuple([_seed(group, rules, epoch, step, rank) for rank, group in enumerate(chosen)])


def _measured(group: SealedGroup) -> bool:
    return group.purpose == Purpose.TRAIN and any(turns is not None for turns in group.passed)


def _cooling(task: str, rules: Rules, step: int, last: Mapping[str, int]) -> bool:
    return task in last and step - last[task] <= rules.select.cooldown_steps


def _bucket(groups: Sequence[SealedGroup], rules: Rules, step: int) -> list[SealedGroup]:
    boundary = [group for group in groups if group.boundary]
    worths = _worths(boundary, rules)
    order = sorted(range(len(boundary)), key=lambda index: (-worths[index], boundary[index].task))
    ranked = [boundary[index] for index in order[: rules.select.quota]]
    if rules.curriculum == "random":
        return sorted(groups, key=lambda group: digest([rules.seed, step, group.task]))[: len(ranked)]
    return ranked


def _worths(groups: Sequence[SealedGroup], rules: Rules) -> Sequence[int | Fraction]:
    """What ranks each, exact. φ of all on their common denominator: integers compare faster than fractions."""
    figures = [pooled(group.state.window) for group in groups]
    if rules.select.rank_by == "variance":
        return [found.variance for found in figures]
    wholes = [found.n * found.turns_total for found in figures]
    common = lcm(*wholes)
    return [
        found.sum_passed * (whole - found.sum_passed) * (common // whole) ** 2
        for found, whole in zip(figures, wholes, strict=True)
    ]


def _seed(group: SealedGroup, rules: Rules, epoch: int, step: int, rank: int) -> SelectedSeed:
    figures = pooled(group.state.window)
    return SelectedSeed(
        seed=seed_id(rules.seed, epoch, step, group.task),
        task=group.task,
        category=group.category,
        phi=text_of(phi_of(figures.mean)),
        variance=text_of(figures.variance),
        rank=rank,
        evidence=tuple([part.group for part in group.state.window]),
    )
