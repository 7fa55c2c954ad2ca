"""Two runs side by side: where they begin to differ, and in what.

Ids derive from seed, epoch, step and content, so equal decisions have equal ids in both.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schemas.pool import PoolMaterialized
from schemas.rollouts import Purpose
from schemas.topics import Topic
from streams.audit.compare.divergence import Difference, differences
from streams.audit.errors import of_a_run
from streams.audit.load.epochs import RunFacts, run_facts
from streams.audit.load.source import LogSource, events
from streams.audit.recompute.select import SealedPass


@dataclass(frozen=True, slots=True)
class EpochContrast:
    """An epoch in both runs.

    members, seeds, groups: those of one run only.
    rollouts: groups with other results.
    """

    epoch: int
    pools_equal: bool
    digests: tuple[str, str]
    members: tuple[tuple[str, ...], tuple[str, ...]]
    seeds: tuple[tuple[str, ...], tuple[str, ...]]
    groups: tuple[int, int]
    rollouts: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return self.pools_equal and not any(self.members) and not any(self.seeds) and not self.rollouts

    def document(self) -> dict[str, Any]:
        """As JSON holds it: of each pair, the first run's, then the second's."""
        return {
            "epoch": self.epoch,
            "equal": self.equal,
            "pool_digests": list(self.digests),
            "members_only_in": [list(one) for one in self.members],
            "seeds_only_in": [list(one) for one in self.seeds],
            "groups_only_in": list(self.groups),
            "groups_with_other_results": list(self.rollouts),
        }


@dataclass(frozen=True, slots=True)
class Contrast:
    """settings: of the first epoch, and the provenance that differs."""

    run_ids: tuple[str, str]
    settings: tuple[Difference, ...]
    epochs: tuple[EpochContrast, ...]

    @property
    def equal(self) -> bool:
        return all(epoch.equal for epoch in self.epochs)

    @property
    def first(self) -> EpochContrast | None:
        """The first epoch that differs."""
        return next((epoch for epoch in self.epochs if not epoch.equal), None)


@dataclass(slots=True)
class _Told:
    """What one run decided in an epoch."""

    digest: str = ""
    members: tuple[str, ...] = ()
    seeds: frozenset[str] = frozenset()
    groups: dict[str, tuple[int | None, ...]] | None = None


@of_a_run()
def compare_runs(one: LogSource, other: LogSource, to_epoch: int | None = None) -> Contrast:
    """The contrast of two logs, epoch by epoch."""
    stories = run_facts(one, to_epoch), run_facts(other, to_epoch)
    told = _told(one, to_epoch), _told(other, to_epoch)
    numbers = sorted(told[0].keys() | told[1].keys())
    epochs = [_contrast(number, told[0].get(number, _Told()), told[1].get(number, _Told())) for number in numbers]
    return Contrast((stories[0].run_id, stories[1].run_id), tuple(_settings(*stories)), tuple(epochs))


def _settings(one: RunFacts, other: RunFacts) -> Iterator[Difference]:
    shared = sorted(one.opened.keys() & other.opened.keys())
    if not shared:
        return
    first, second = one.opened[shared[0]], other.opened[shared[0]]
    yield from differences(json.loads(first.rules), json.loads(second.rules), "rules")
    for name in ("partitions", "code_revision", "packages", "source_digest", "model_digest", "tokenizer_digest"):
        yield from differences(getattr(first, name), getattr(second, name), name)


def _told(source: LogSource, to_epoch: int | None) -> dict[int, _Told]:
    found: dict[int, _Told] = {}
    sealed = SealedPass(source, to_epoch)
    for _, _, event in events(source, Topic.POOL, 0) if source.partitions(Topic.POOL) else ():
        if isinstance(event, PoolMaterialized) and event.epoch not in found and _within(event.epoch, to_epoch):
            found[event.epoch] = _Told(event.digest, event.members, frozenset(), {})
    sealed.finish()
    for selection in sealed.log.selections.values():
        told = found.setdefault(selection.epoch, _Told())
        told.seeds |= {f"{seed.task} at step {selection.step}" for seed in selection.seeds}
    for step in sealed.log.steps.values():
        told = found.setdefault(step.epoch, _Told())
        told.groups = (told.groups or {}) | {
            group.group: group.passed for group in step.groups() if Purpose(group.purpose).measured
        }
    return found


def _within(epoch: int, to_epoch: int | None) -> bool:
    return to_epoch is None or epoch <= to_epoch


def _contrast(epoch: int, one: _Told, other: _Told) -> EpochContrast:
    first, second = one.groups or {}, other.groups or {}
    return EpochContrast(
        epoch=epoch,
        pools_equal=one.digest == other.digest,
        digests=(one.digest, other.digest),
        members=_only(one.members, other.members),
        seeds=_only(one.seeds, other.seeds),
        groups=(len(first.keys() - second.keys()), len(second.keys() - first.keys())),
        rollouts=tuple(sorted(g for g in first.keys() & second.keys() if first[g] != second[g])),
    )


def _only(
    one: tuple[str, ...] | frozenset[str], other: tuple[str, ...] | frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(sorted(set(one) - set(other))), tuple(sorted(set(other) - set(one)))
