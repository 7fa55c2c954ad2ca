"""What drift takes from the pool's columns: which tasks are variants, since when, and what was evicted."""

from collections import defaultdict
from dataclasses import dataclass

import pyarrow as pa

from schemas.pool import RetirementRule

_EVICTIONS = frozenset({RetirementRule.BURN_IN.value, RetirementRule.DRIFT_LOW.value, RetirementRule.DRIFT_HIGH.value})


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """injected: task to the epoch of the boundary that first brought it in.
    evicted: epoch to the tasks that left by what they were measured to be.
    """

    variants: frozenset[str]
    injected: dict[str, int]
    evicted: dict[int, frozenset[str]]


def pool_facts(table: pa.Table) -> PoolFacts:
    """Reads the columns in order. What a learner wrote after a newer one had started is ignored, as the fold does."""
    variants: set[str] = set()
    injected: dict[str, int] = {}
    evicted: dict[int, set[str]] = defaultdict(set)
    newest = 0
    columns = ("kind", "generation", "epoch", "task", "word")
    for kind, generation, epoch, task, word in zip(*(table[name].to_pylist() for name in columns), strict=True):
        if kind == "LearnerStarted":
            newest = max(newest, generation)
        elif 0 < generation < newest:
            continue
        elif kind == "VariantVerified":
            variants.add(task)
        elif kind == "TaskInjected":
            injected.setdefault(task, epoch)
        elif kind == "TaskRetired" and word in _EVICTIONS:
            evicted[epoch].add(task)
    return PoolFacts(frozenset(variants), injected, {epoch: frozenset(tasks) for epoch, tasks in evicted.items()})
