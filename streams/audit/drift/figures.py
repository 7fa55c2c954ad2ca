"""Drift: how a curriculum moved from epoch to epoch, by the seals that count, in columns.

All figures are of train groups. Progress, zones, flips and distances are of those with a live slot; a mean is that of
one group, exact, whatever the window. A verdict is whether a single visit alone would evict the task (its mean below
drift_low or above drift_high); a flip is a visit whose verdict is not that of the task's visit before.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.rollouts import Purpose
from schemas.rules import Rules
from schemas.seals import Zone
from schemas.topics import Topic
from streams.audit.drift.histogram import BINS, jensen_shannon, psi
from streams.audit.drift.pool_facts import PoolFacts, pool_facts
from streams.audit.drift.winners import winning_rows
from streams.audit.errors import AuditError, of_a_run
from streams.audit.load.columns import ColumnStore
from streams.audit.load.epochs import RunFacts

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EpochDrift:
    """One epoch. Shares are of `groups`, None where there is none.

    zones, categories: train groups by zone and by category.
    depth: mean turns of their tasks.
    progress: mean, None where nothing was live.
    histogram: live groups by their mean, in ten equal bins, the last one closed.
    variant_groups: those of generated tasks.
    variant_age: their mean age in epochs, from the boundary that brought them in.
    revisits: groups whose task was visited before.
    flips: see the module.
    evictions: by burn-in or drift at the epoch's boundary.
    evictions_flipped: those whose verdict had been to keep at the visit before.
    critiques: stages of synthesis that judged a draft; critiques_passed.
    psi, jensen_shannon: of the histogram against the reference epoch's.
    """

    epoch: int
    groups: int
    live_groups: int
    attempts: int
    zones: dict[str, int]
    categories: dict[str, int]
    depth: float | None
    progress: float | None
    histogram: tuple[int, ...]
    variant_groups: int
    variant_share: float | None
    variant_age: float | None
    revisits: int
    flips: int
    flip_share: float | None
    evictions: int
    evictions_flipped: int
    critiques: int
    critiques_passed: int
    judge_pass_rate: float | None
    psi: float | None
    jensen_shannon: float | None

    def document(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    def zone_share(self, zone: Zone) -> float | None:
        return self.zones[zone.value] / self.groups if self.groups else None


@dataclass(frozen=True, slots=True)
class DriftReport:
    """A run's epochs. reference: the epoch that distances are measured against."""

    run_id: str
    reference: int
    epochs: tuple[EpochDrift, ...]


@of_a_run()
def drift(store: ColumnStore, run: RunFacts, reference: int | None = None, to_epoch: int | None = None) -> DriftReport:
    """The drift of a run, against its first epoch unless another is named. Raises AuditError."""
    groups = winning_rows(store.table(Topic.SEALS))
    groups = groups.filter(pc.equal(groups["purpose"].cast(pa.string()), Purpose.TRAIN.value))
    if to_epoch is not None:
        groups = groups.filter(pc.less_equal(groups["epoch"], to_epoch))
    numbers = sorted(set(_ints(groups, "epoch").tolist()))
    chosen = reference if reference is not None else (numbers[0] if numbers else 0)
    if chosen not in numbers:
        raise AuditError(f"the log holds no sealed group of epoch {chosen} to compare with")
    facts = pool_facts(store.table(Topic.POOL))
    critiques = _critiques(store.table(Topic.SYNTHESIS))
    measured = _Measured(groups, run, facts)
    base = measured.histogram(chosen)
    rows = tuple([measured.row(epoch, base, critiques) for epoch in numbers])
    return DriftReport(run.run_id, chosen, rows)


class _Measured:
    """The columns of the train groups, sorted by task and step, and what follows for each row."""

    def __init__(self, groups: pa.Table, run: RunFacts, facts: PoolFacts) -> None:
        self.facts = facts
        task = groups["task"].combine_chunks()
        names: list[str] = task.dictionary.to_pylist()
        codes = np.asarray(task.indices, dtype=np.int64)
        order = np.lexsort((_ints(groups, "step"), codes))
        self.codes = codes[order]
        self.epoch, self.total, self.live, self.passed = (
            _ints(groups, name)[order] for name in ("epoch", "turns_total", "live", "sum_passed")
        )
        self.zone, self.zone_names = _symbols(groups, "zone", order)
        self.category, self.category_names = _symbols(groups, "category", order)
        since = np.array([facts.injected.get(name, -1) for name in names], dtype=np.int64)
        variant = np.array([name in facts.variants for name in names], dtype=np.bool_)
        self.names = names
        self.variant, self.since = variant[self.codes], since[self.codes]
        self.verdict = self._verdicts(run)
        self.previous = self._previous()

    def _verdicts(self, run: RunFacts) -> Bools:
        """Whether each row's mean alone is beyond the thresholds of its epoch, by integers."""
        verdict = np.zeros(len(self.epoch), dtype=np.bool_)
        for epoch, opened in run.opened.items():
            rows = self.epoch == epoch
            rules = Rules.parse(opened.rules).pool
            (low, low_of), (high, high_of) = rules.drift_low.as_integer_ratio(), rules.drift_high.as_integer_ratio()
            whole = self.live * self.total
            verdict |= rows & ((self.passed * low_of < low * whole) | (self.passed * high_of > high * whole))
        return verdict & (self.live > 0)

    def _previous(self) -> Ints:
        """The row of the task's last live visit before each row; -1 where there is none."""
        index = np.arange(len(self.codes), dtype=np.int64)
        starts = np.r_[True, self.codes[1:] != self.codes[:-1]] if len(index) else np.zeros(0, dtype=np.bool_)
        first = np.maximum.accumulate(np.where(starts, index, 0))
        seen = np.where(self.live > 0, index, -1)
        last = np.maximum.accumulate(seen) if len(index) else seen
        before = np.r_[-1, last[:-1]].astype(np.int64) if len(index) else last
        return np.where(before >= first, before, -1)

    def histogram(self, epoch: int) -> tuple[int, ...]:
        rows = (self.epoch == epoch) & (self.live > 0)
        bins = np.minimum(BINS - 1, BINS * self.passed[rows] // (self.live[rows] * self.total[rows]))
        return tuple(int(count) for count in np.bincount(bins, minlength=BINS))

    def row(self, epoch: int, base: Sequence[int], critiques: Mapping[int, tuple[int, int]]) -> EpochDrift:
        rows = self.epoch == epoch
        live = rows & (self.live > 0)
        groups = int(rows.sum())
        means = self.passed[live] / (self.live[live] * self.total[live])
        variants = rows & self.variant
        aged = variants & (self.since >= 0)
        revisits = live & (self.previous >= 0)
        flips = revisits & (self.verdict != self.verdict[self.previous])
        evictions, flipped = self._evictions(epoch, flips & self.verdict, revisits)
        judged, passed = critiques.get(epoch, (0, 0))
        histogram = self.histogram(epoch)
        return EpochDrift(
            epoch=epoch,
            groups=groups,
            live_groups=int(live.sum()),
            attempts=int(self.live[rows].sum()),
            zones={zone.value: 0 for zone in Zone} | _counts(self.zone[rows], self.zone_names),
            categories=_counts(self.category[rows], self.category_names),
            depth=float(self.total[rows].mean()) if groups else None,
            progress=float(means.mean()) if len(means) else None,
            histogram=histogram,
            variant_groups=int(variants.sum()),
            variant_share=_share(int(variants.sum()), groups),
            variant_age=float((epoch - self.since[aged]).mean()) if aged.any() else None,
            revisits=int(revisits.sum()),
            flips=int(flips.sum()),
            flip_share=_share(int(flips.sum()), int(revisits.sum())),
            evictions=evictions,
            evictions_flipped=flipped,
            critiques=judged,
            critiques_passed=passed,
            judge_pass_rate=_share(passed, judged),
            psi=psi(histogram, base),
            jensen_shannon=jensen_shannon(histogram, base),
        )

    def _evictions(self, epoch: int, to_evict: Bools, revisits: Bools) -> tuple[int, int]:
        """Evictions at the boundary, and those whose visit before said to keep."""
        evicted = self.facts.evicted.get(epoch, frozenset())
        turned = {self.names[code] for code in self.codes[to_evict & revisits].tolist()}
        return len(evicted), len(evicted & turned)


def _critiques(table: pa.Table) -> dict[int, tuple[int, int]]:
    """Epoch to the critiques of its seeds, and those passed. A stage that was written twice counts once."""
    if not table.num_rows:
        return {}
    wanted = pc.and_(
        pc.equal(table["kind"].cast(pa.string()), "StageFinished"),
        pc.equal(table["stage"].cast(pa.string()), "critique"),
    )
    rows = table.filter(wanted).select(["epoch", "seed", "index", "attempt", "ordinal", "ok"]).to_pylist()
    first = {(row["seed"], row["index"], row["attempt"], row["ordinal"]): row for row in reversed(rows)}
    judged = Counter(row["epoch"] for row in first.values())
    passed = Counter(row["epoch"] for row in first.values() if row["ok"])
    return {epoch: (count, passed[epoch]) for epoch, count in judged.items()}


def _ints(table: pa.Table, name: str) -> Ints:
    return table[name].to_numpy().astype(np.int64, copy=False)  # type: ignore[no-any-return]


def _symbols(table: pa.Table, name: str, order: Ints) -> tuple[Ints, list[str]]:
    column = table[name].combine_chunks()
    return np.asarray(column.indices, dtype=np.int64)[order], column.dictionary.to_pylist()


def _counts(codes: Ints, names: Sequence[str]) -> dict[str, int]:
    counts = np.bincount(codes, minlength=len(names))
    return {name: int(count) for name, count in sorted(zip(names, counts, strict=True)) if count}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
