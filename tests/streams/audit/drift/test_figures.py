"""Every figure of drift, recomputed from the rollouts by SQL that shares nothing with it."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import chdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rods.reports.drift_page import drift_page
from schemas.codec import decode
from schemas.epochs import EpochOpened, LearnerStarted
from schemas.errors import UndecodableError
from schemas.pool import TaskInjected, TaskRetired, VariantVerified
from schemas.rollouts import BarrierReached, RolloutFinished, Slot
from schemas.rules import Rules
from schemas.synthesis import StageFinished
from schemas.topics import Topic
from streams.archive.read import read_archive
from streams.audit.drift.figures import DriftReport, drift
from streams.audit.drift.findings import DriftLimits, findings
from streams.audit.errors import AuditError
from streams.audit.load.columns import ColumnStore
from streams.audit.load.epochs import run_facts
from streams.audit.load.source import ArchiveSource
from tests.streams.audit.forge import GOLDEN

ARCHIVES = sorted(GOLDEN.iterdir())

# One row a group that a barrier expected, train or probe: of the results of its shape between the barrier of the step
# before and its own, the first. A barrier of a learner that another one has overtaken is none. Of its slots those count
# that finished with values that can be: what failed is not a zero.
MEASURED = """
WITH fenced AS (
    SELECT *, max(generation) OVER (PARTITION BY partition ORDER BY offset) AS newest
    FROM file('{folder}/fences.parquet')
), closing AS (
    SELECT partition, step, min(offset) AS at
    FROM fenced WHERE step > 0 AND generation = newest GROUP BY partition, step
), spans AS (
    SELECT partition, at, lagInFrame(at, 1, -1) OVER (
        PARTITION BY partition ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS after
    FROM closing
), slots AS (
    SELECT *, repeat('1', greatest(0, passed)) AS won, status = 'finished' AND reason = '' AND least_count >= 0
        AND trajectory <= 64 AND slot_total = turns_total AND passed BETWEEN 0 AND turns_total
        AND outcomes IN (won, substring(concat(won, '0'), 1, turns_total)) AS live
    FROM file('{folder}/slots.parquet')
), results AS (
    SELECT partition, offset, step, task, purpose, category, group, k, turns_total,
           countIf(live) AS alive, sumIf(passed, live) AS won
    FROM slots GROUP BY partition, offset, step, task, purpose, category, group, k, turns_total HAVING count() = k
), measured AS (
    SELECT e.epoch AS epoch, e.step AS step, e.task AS task, e.purpose AS purpose, e.category AS category,
           e.turns_total AS turns_total, e.alpha_low AS alpha_low, e.alpha_high AS alpha_high, e.window AS window,
           e.drift_low AS drift_low, e.drift_high AS drift_high,
           argMinIf(r.alive, r.offset, r.group != '' AND r.step = e.step AND r.offset > s.after AND r.offset < s.at)
               AS live,
           argMinIf(r.won, r.offset, r.group != '' AND r.step = e.step AND r.offset > s.after AND r.offset < s.at)
               AS passed
    FROM file('{folder}/expected.parquet') AS e
    JOIN spans AS s ON s.partition = e.partition AND s.at = e.offset
    LEFT JOIN results AS r ON r.partition = e.partition AND r.group = e.group AND r.task = e.task
        AND r.purpose = e.purpose AND r.category = e.category AND r.k = e.k AND r.turns_total = e.turns_total
    GROUP BY e.partition, e.offset, e.epoch, e.step, e.task, e.group, e.purpose, e.category, e.turns_total,
             e.alpha_low, e.alpha_high, e.window, e.drift_low, e.drift_high
), groups AS (
    SELECT *, live > 0 AND (passed / (live * turns_total) < drift_low OR passed / (live * turns_total) > drift_high)
        AS verdict
    FROM measured WHERE purpose = 'train'
)
"""

BINS = ", ".join(f"countIf(live > 0 AND least(9, intDiv(10 * passed, live * turns_total)) = {b})" for b in range(10))
FIGURES = (
    MEASURED
    + """
, pooled AS (
    SELECT *,
        arraySlice(groupArrayIf((live, passed, turns_total), live > 0)
            OVER (PARTITION BY task ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), -window) AS seen,
        arraySum(x -> x.2 * 5040 / x.3, seen) / (5040 * arraySum(x -> x.1, seen)) AS mean
    FROM measured
), ordered AS (
    SELECT *, lagInFrame(toNullable(verdict)) OVER (
        PARTITION BY task ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS before
    FROM groups WHERE live > 0
), flips AS (
    SELECT epoch, countIf(before IS NOT NULL) AS revisits, countIf(before != verdict) AS flips,
           groupArrayIf(task, verdict AND before = 0) AS turned
    FROM ordered GROUP BY epoch
)
SELECT p.epoch AS epoch, count() AS groups, countIf(live > 0) AS live_groups, sum(live) AS attempts,
    countIf(length(seen) > 0 AND mean > alpha_high) AS mastered,
    countIf(length(seen) > 0 AND mean >= alpha_low AND mean <= alpha_high) AS boundary,
    countIf(length(seen) > 0 AND mean < alpha_low) AS hard,
    countIf(length(seen) = 0) AS none,
    sumMap(map(p.category, 1)) AS categories,
    avg(turns_total) AS depth, avgIf(passed / (live * turns_total), live > 0) AS progress,
    [BINS] AS histogram,
    countIf(v.task != '') AS variant_groups, countIf(v.task != '') / count() AS variant_share,
    avgIf(p.epoch - v.since, v.task != '' AND v.since >= 0) AS variant_age,
    any(f.revisits) AS revisits, any(f.flips) AS flips, any(f.turned) AS turned
FROM pooled AS p
LEFT JOIN file('{folder}/variants.parquet') AS v ON v.task = p.task
LEFT JOIN flips AS f ON f.epoch = p.epoch
WHERE p.purpose = 'train'
GROUP BY p.epoch ORDER BY p.epoch
""".replace("BINS", BINS)
)
DISTANCES = (
    MEASURED
    + f"""
, counted AS (SELECT epoch, [{BINS}] AS bins FROM groups GROUP BY epoch),
shares AS (SELECT epoch, arrayMap(c -> (c + 0.5) / (arraySum(bins) + 5), bins) AS p FROM counted)
SELECT a.epoch AS epoch,
    arraySum((x, y) -> (x - y) * log(x / y), a.p, b.p) AS psi,
    sqrt(greatest(0, arraySum((x, y) -> x * log2(2 * x / (x + y)) / 2 + y * log2(2 * y / (x + y)) / 2, a.p, b.p))) AS js
FROM shares AS a CROSS JOIN (SELECT p FROM shares WHERE epoch = {{reference}}) AS b ORDER BY epoch
"""
)
EVICTED = """
SELECT epoch, uniqExact(task) AS evictions, groupUniqArray(task) AS tasks
FROM file('{folder}/evicted.parquet') GROUP BY epoch
"""
CRITIQUES = """
SELECT epoch, uniqExact(seed, index, attempt, ordinal) AS critiques,
       uniqExactIf((seed, index, attempt, ordinal), ok) AS passed
FROM file('{folder}/critiques.parquet') GROUP BY epoch
"""


def events(archive: Path, topic: Topic) -> Iterator[tuple[int, int, Any]]:
    for record in read_archive(archive, topic):
        with suppress(UndecodableError):
            yield record.partition, record.offset, decode(record.value or b"")


def load(archive: Path, folder: Path) -> None:
    """The rollouts and the few other facts as tables, column by column."""
    rules = {e.epoch: Rules.parse(e.rules) for _, _, e in events(archive, Topic.EPOCHS) if isinstance(e, EpochOpened)}
    slots, expected, fences = [], [], []
    for partition, offset, event in events(archive, Topic.ROLLOUTS):
        place = {"partition": partition, "offset": offset}
        if isinstance(event, RolloutFinished):
            shared = {name: getattr(event, name) for name in _SHARED}
            slots += [{**place, **shared, **_slot(slot)} for slot in event.slots]
        elif isinstance(event, LearnerStarted):
            fences.append({**place, "generation": event.generation, "step": 0})
        elif isinstance(event, BarrierReached):
            fences.append({**place, "generation": event.generation, "step": event.step})
            chosen = rules[event.epoch]
            thresholds = {
                "alpha_low": float(chosen.measure.alpha_low),
                "alpha_high": float(chosen.measure.alpha_high),
                "drift_low": float(chosen.pool.drift_low),
                "drift_high": float(chosen.pool.drift_high),
                "window": chosen.measure.window,
            }
            for group in event.expected:
                names = {name: getattr(group, name) for name in _SHAPE}
                expected.append({**place, "epoch": event.epoch, "step": event.step, **names, **thresholds})
    _write(folder / "slots.parquet", slots)
    _write(folder / "fences.parquet", fences)
    _write(folder / "expected.parquet", expected)
    pool = [event for _, _, event in events(archive, Topic.POOL)]
    since = {event.task: event.epoch for event in reversed(pool) if isinstance(event, TaskInjected)}
    variants = [e.definition.task for e in pool if isinstance(e, VariantVerified)]
    _write(folder / "variants.parquet", [{"task": task, "since": since.get(task, -1)} for task in variants])
    evicted = [e for e in pool if isinstance(e, TaskRetired) and e.rule in ("burn_in", "drift_low", "drift_high")]
    _write(folder / "evicted.parquet", [{"epoch": e.epoch, "task": e.task} for e in evicted])
    critiques = [
        {name: getattr(e, name) for name in ("epoch", "seed", "index", "attempt", "ordinal", "ok")}
        for _, _, e in events(archive, Topic.SYNTHESIS)
        if isinstance(e, StageFinished) and e.stage == "critique"
    ]
    _write(folder / "critiques.parquet", critiques)


_SHAPE = ("group", "task", "purpose", "k", "turns_total", "category")
_SHARED = ("step", *_SHAPE)


def _slot(slot: Slot) -> dict[str, Any]:
    """An attempt's outcome, column by column. outcomes: a 1 for each turn passed, a 0 for the one that was not."""
    return {
        "status": slot.status,
        "reason": slot.reason or "",
        "passed": slot.turns_passed,
        "slot_total": slot.turns_total,
        "outcomes": "".join([str(int(passed)) for passed in slot.outcomes]),
        "least_count": min(slot.tool_calls, slot.tokens, slot.latency, slot.policy_version),
        "trajectory": len(slot.trajectory),
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    if rows:
        pq.write_table(pa.Table.from_pylist(rows), path)


def asked(sql: str, folder: Path, **values: Any) -> list[dict[str, Any]]:
    plain = " SETTINGS schema_inference_make_columns_nullable = 0"
    answer = str(chdb.query(sql.format(folder=folder, **values) + plain, "JSON"))
    rows: list[dict[str, Any]] = json.loads(answer)["data"]
    return [{name: _number(value) for name, value in row.items()} for row in rows]


def _number(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    if isinstance(value, dict):
        return {name: _number(inner) for name, inner in value.items()}
    return [_number(inner) for inner in value] if isinstance(value, list) else value


def measured(archive: Path, folder: Path | None = None, **options: Any) -> DriftReport:
    source = ArchiveSource(archive)
    return drift(ColumnStore(source, folder, jobs=1), run_facts(source), **options)


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_every_figure_of_drift_is_what_sql_makes_of_the_rollouts(archive: Path, tmp_path: Path) -> None:
    load(archive, tmp_path)
    report = measured(archive)
    figures = {row["epoch"]: row for row in asked(FIGURES, tmp_path)}
    distances = {row["epoch"]: row for row in asked(DISTANCES, tmp_path, reference=report.reference)}
    evicted = _by_epoch(EVICTED, tmp_path, "evicted")
    critiques = _by_epoch(CRITIQUES, tmp_path, "critiques")
    assert [row.epoch for row in report.epochs] == sorted(figures)
    for row in report.epochs:
        sql = figures[row.epoch]
        for name in ("groups", "live_groups", "attempts", "variant_groups", "revisits", "flips", "categories"):
            assert getattr(row, name) == sql[name], name
        assert row.zones == {zone: sql[zone] for zone in ("mastered", "boundary", "hard", "none")}
        assert list(row.histogram) == sql["histogram"]
        for name in ("depth", "progress", "variant_share", "variant_age"):
            assert getattr(row, name) == (None if sql[name] is None else pytest.approx(sql[name], abs=1e-12)), name
        assert row.flip_share == (pytest.approx(sql["flips"] / sql["revisits"]) if sql["revisits"] else None)
        gone = evicted.get(row.epoch, {"evictions": 0, "tasks": []})
        assert (row.evictions, row.evictions_flipped) == (
            gone["evictions"],
            len(set(gone["tasks"]) & set(sql["turned"])),
        )
        judged = critiques.get(row.epoch, {"critiques": 0, "passed": 0})
        assert (row.critiques, row.critiques_passed) == (judged["critiques"], judged["passed"])
        assert row.judge_pass_rate == (judged["passed"] / judged["critiques"] if judged["critiques"] else None)
        assert row.psi == pytest.approx(distances[row.epoch]["psi"], abs=1e-12)
        assert row.jensen_shannon == pytest.approx(distances[row.epoch]["js"], abs=1e-9)


def _by_epoch(sql: str, folder: Path, table: str) -> dict[int, dict[str, Any]]:
    return {row["epoch"]: row for row in asked(sql, folder)} if (folder / f"{table}.parquet").exists() else {}


def test_the_archives_have_variants_flips_and_evictions_to_count() -> None:
    rows = [row for archive in ARCHIVES for row in measured(archive).epochs]
    assert sum(row.variant_groups for row in rows) > 5
    assert sum(row.flips for row in rows) > 5
    assert sum(row.evictions for row in rows) > 5
    assert sum(row.evictions_flipped for row in rows) > 0
    assert any(row.zones["hard"] for row in rows)
    assert any(row.zones["none"] for row in rows), "and groups whose task has no live attempt so far"
    assert any(row.live_groups < row.groups for row in rows)


def test_side_files_change_nothing_and_are_bound_to_their_segments(tmp_path: Path) -> None:
    archive = GOLDEN / "windowed"
    plain = measured(archive)
    assert measured(archive, tmp_path) == plain
    kept = sorted(tmp_path.rglob("*.parquet"))
    assert len(kept) == 6
    assert measured(archive, tmp_path) == plain
    seals = next(path for path in kept if "seals" in path.parts)
    pool = next(path for path in kept if "pool" in path.parts)
    seals.write_bytes(pool.read_bytes())
    assert measured(archive, tmp_path) == plain, "a side file that says another sha256 is made again"
    seals.write_bytes(b"noise")
    assert measured(archive, tmp_path) == plain


def test_the_reference_epoch_is_at_no_distance_from_itself() -> None:
    report = measured(GOLDEN / "windowed", reference=2)
    assert [(row.epoch, row.psi == 0, row.jensen_shannon == 0) for row in report.epochs] == [
        (1, False, False),
        (2, True, True),
        (3, False, False),
    ]
    with pytest.raises(AuditError, match="no sealed group of epoch 9"):
        measured(GOLDEN / "windowed", reference=9)


def test_drift_up_to_an_epoch_is_the_drift_of_its_epochs() -> None:
    assert measured(GOLDEN / "windowed", to_epoch=2).epochs == measured(GOLDEN / "windowed").epochs[:2]


def test_a_finding_names_the_figure_its_value_and_its_limit() -> None:
    report = measured(GOLDEN / "windowed")
    loose = DriftLimits(psi=99, jensen_shannon=99, flip_share=99, boundary_share_below=0)
    assert findings(report, loose) == []
    (found,) = findings(report, DriftLimits(psi=1.0, jensen_shannon=99, flip_share=99, boundary_share_below=0))
    assert (found.epoch, found.limit, found.bound) == (3, "psi", 1.0)
    assert found.value == report.epochs[2].psi
    assert DriftLimits().changed("psi=0.1").psi == 0.1
    with pytest.raises(AuditError, match="a limit is given as name=number"):
        DriftLimits().changed("pxi=0.1")
    with pytest.raises(AuditError, match="the limit psi is a number"):
        DriftLimits().changed("psi=much")


def test_the_page_needs_nothing_beside_it() -> None:
    report = measured(GOLDEN / "windowed")
    page = drift_page(report, findings(report, DriftLimits()), DriftLimits())
    assert page.count("<svg") == 9
    assert "<script" not in page
    assert re.findall(r"(?:src|href)=\"(?!#)[^\"]*\"", page) == []
    assert "@import" not in page
    assert re.findall(r"url\((?!#)", page) == []
    assert "population stability index" in page
    assert drift_page(report, [], DriftLimits()) == drift_page(report, [], DriftLimits())
