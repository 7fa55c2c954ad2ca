import random
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from schemas.codec import encode
from schemas.epochs import EpochOpened, LearnerStarted
from schemas.pool import (
    BoundaryOpened,
    OperatorDecided,
    PoolMaterialized,
    SeedSettled,
    TaskInjected,
    TaskProbed,
    TaskRetired,
    VariantVerified,
)
from schemas.rollouts import RolloutFinished, TaskMeasured
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectionClosed, Zone
from schemas.topics import Topic
from streams.archive.read import read_partition
from streams.audit.compare.divergence import Divergence, Stage
from streams.audit.compare.limits import LimitName, Provenance
from streams.audit.load.source import ArchiveSource
from streams.audit.replay import ReplayOptions, ReplayReport, replay
from tests.archives import seal
from tests.streams.audit.forge import DROP, GOLDEN, Place, forge, places

ALONE = ReplayOptions(jobs=1)
DECISIONS: tuple[tuple[Topic, type[Any], frozenset[str]], ...] = (
    (Topic.MEASUREMENTS, TaskMeasured, frozenset()),
    (Topic.SEALS, PartitionSealed, frozenset()),
    (Topic.SEALS, SelectionClosed, frozenset()),
    (Topic.SEEDS, BoundarySeedSelected, frozenset()),
    (Topic.POOL, BoundaryOpened, frozenset({"generation"})),
    (Topic.POOL, TaskInjected, frozenset({"generation"})),
    (Topic.POOL, TaskRetired, frozenset({"generation"})),
    (Topic.POOL, TaskProbed, frozenset({"generation"})),
    (Topic.POOL, SeedSettled, frozenset({"seed"})),
    (Topic.POOL, PoolMaterialized, frozenset({"generation", "offsets"})),
)
"""Every kind of decision, and the fields of it that decide nothing, or without which it is of something else."""


def replayed(archive: Path, options: ReplayOptions = ALONE) -> ReplayReport:
    return replay(ArchiveSource(archive), options)


def other(value: Any) -> Any:
    """A value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("a" if value[-1:] != "a" else "b")
    if isinstance(value, tuple):
        return value[:-1] if value else ("x",)
    return None if value is not None else 0.5


def changed(event: Any, field: str) -> Any:
    return replace(event, **{field: other(getattr(event, field))})


def decision_fields() -> list[tuple[Topic, type[Any], str]]:
    return [
        (topic, kind, field.name)
        for topic, kind, unjudged in DECISIONS
        for field in fields(kind)
        if field.name not in unjudged | {"envelope", "KIND"}
    ]


def test_a_run_replays_without_divergence() -> None:
    report = replayed(GOLDEN / "windowed")
    assert report.agrees
    assert report.counts.groups == 42
    assert report.counts.attempts == 304
    assert (report.counts.seals, report.counts.selections, report.counts.seeds) == (28, 7, 13)
    assert report.counts.boundaries == 4


@pytest.mark.parametrize("archive", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_every_golden_archive_replays_bit_for_bit(archive: Path) -> None:
    report = replayed(archive)
    recorded = [event for _, event in places(archive, Topic.POOL, lambda event: isinstance(event, PoolMaterialized))]
    assert report.agrees, report.first
    assert report.digests == {event.epoch: event.digest for event in recorded}


def test_a_disturbed_run_was_disturbed_in_every_way_and_replays() -> None:
    archive = GOLDEN / "disturbed"
    report = replayed(archive)
    assert report.agrees
    assert {limit.name for limit in report.limits} >= {LimitName.SLOTS, LimitName.EXPIRED}
    seals = [event for _, event in places(archive, Topic.SEALS, lambda event: isinstance(event, PartitionSealed))]
    counts = [sum(getattr(seal, name) for seal in seals) for name in ("late", "duplicate", "refused")]
    assert min(counts) > 0, counts
    reasons = {reason for seal in seals for group in seal.groups for reason in group.reasons}
    assert reasons == {"", "timeout", "missing", "impossible"}
    pool = [event for _, event in places(archive, Topic.POOL, lambda _: True)]
    assert any(isinstance(event, OperatorDecided) for event in pool)
    assert {event.rule for event in pool if isinstance(event, TaskRetired)} >= {"operator", "drift_high", "pruning"}
    assert any(event.returned for event in pool if isinstance(event, TaskInjected))
    assert {event.generation for event in pool if isinstance(event, LearnerStarted)} > {1}
    dead = {event.reason for _, event in places(archive, Topic.DEAD_LETTERS, lambda _: True)}
    assert "not an Avro single-object frame" in dead
    assert len(dead) > 2


def test_more_processes_come_to_the_same_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.audit.replay._IN_PROCESS_RECORDS", 0)
    assert replayed(GOLDEN / "windowed", ReplayOptions(jobs=2)) == replayed(GOLDEN / "windowed")


def test_a_replay_up_to_an_epoch_says_nothing_of_later_ones(tmp_path: Path) -> None:
    place, _ = places(GOLDEN / "windowed", Topic.POOL, lambda event: isinstance(event, PoolMaterialized))[-1]
    archive = forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, digest="0" * 64))
    assert replayed(archive, ReplayOptions(to_epoch=2, jobs=1)).agrees
    assert list(replayed(archive, ReplayOptions(to_epoch=2, jobs=1)).digests) == [0, 1, 2]
    assert not replayed(archive).agrees


@pytest.mark.parametrize(("topic", "kind", "field"), decision_fields())
def test_an_edited_decision_is_found_where_it_stands(topic: Topic, kind: type[Any], field: str, tmp_path: Path) -> None:
    found = places(GOLDEN / "windowed", topic, lambda event: isinstance(event, kind))
    found = [one for one in found if getattr(one[1], field) != ()] or found
    place, event = random.Random(f"{kind.KIND} {field}").choice(found)
    archive = forge(GOLDEN / "windowed", tmp_path, place, lambda recorded: changed(recorded, field))
    first = first_of(replayed(archive))
    assert stands_at(first, place) or about(first, event), first


@pytest.mark.parametrize("archive", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_a_zone_that_was_edited_before_the_rules_were_told_is_found(archive: Path, tmp_path: Path) -> None:
    found = places(archive, Topic.MEASUREMENTS, lambda event: event.step == 1 and event.zone != "")
    place, event = random.Random(archive.name).choice(found)
    other_zone = next(zone.value for zone in Zone if zone.value not in (event.zone, "none"))
    first = first_of(replayed(forge(archive, tmp_path, place, lambda recorded: replace(recorded, zone=other_zone))))
    assert stands_at(first, place)
    assert (first.stage, first.path, first.recorded) == (Stage.MEASUREMENT, "zone", f'"{other_zone}"')


def first_of(report: ReplayReport) -> Divergence:
    assert report.first is not None
    return report.first


def stands_at(divergence: Divergence, place: Place) -> bool:
    """Whether a divergence is said to be at a place."""
    where = divergence.place
    return where.startswith(place.topic.value) and where.endswith(f"at offset {place.offset}")


def about(divergence: Divergence, event: Any) -> bool:
    """Where an edit takes an event out of its boundary, its absence is what shows."""
    return getattr(event, "task", "") in (divergence.task, divergence.recomputed) or event.KIND in divergence.what


@pytest.mark.parametrize(
    ("topic", "kind"),
    [
        (Topic.SEALS, PartitionSealed),
        (Topic.POOL, TaskInjected),
        (Topic.POOL, TaskRetired),
        (Topic.SEEDS, BoundarySeedSelected),
    ],
)
def test_a_decision_that_was_left_out_is_found(topic: Topic, kind: type[Any], tmp_path: Path) -> None:
    place, event = places(GOLDEN / "windowed", topic, lambda event: isinstance(event, kind))[0]
    report = replayed(forge(GOLDEN / "windowed", tmp_path, place, lambda _: DROP))
    assert any(one.epoch == event.epoch and one.recorded == "absent" for one in report.divergences)


def test_a_seal_edited_in_a_group_names_the_task_and_shows_its_rollouts(tmp_path: Path) -> None:
    place, seal = places(
        GOLDEN / "windowed", Topic.SEALS, lambda event: isinstance(event, PartitionSealed) and len(event.groups) > 1
    )[0]

    def forged(event: Any) -> Any:
        group = replace(event.groups[1], zone="mastered", boundary=False)
        return replace(event, groups=(event.groups[0], group, *event.groups[2:]))

    first = first_of(replayed(forge(GOLDEN / "windowed", tmp_path, place, forged)))
    assert (first.stage, first.task) == (Stage.SEAL, seal.groups[1].task)
    assert first.path.startswith("groups[1].")
    assert "mastered" in first.recorded or first.recorded == "false"
    assert any(seal.groups[1].group in line for line in first.evidence)


def test_an_edited_result_shows_at_the_seal_that_rests_on_it(tmp_path: Path) -> None:
    place, result = places(GOLDEN / "windowed", Topic.ROLLOUTS, lambda event: isinstance(event, RolloutFinished))[3]
    total = result.turns_total

    def forged(event: Any) -> Any:
        slot = event.slots[0]
        passed = 0 if slot.turns_passed else total
        outcomes = (True,) * total if passed else (False,)
        return replace(event, slots=(replace(slot, turns_passed=passed, outcomes=outcomes), *event.slots[1:]))

    report = replayed(forge(GOLDEN / "windowed", tmp_path, place, forged))
    seal = next(one for one in report.divergences if one.stage is Stage.SEAL)
    assert (seal.epoch, seal.step, seal.task) == (result.epoch, result.step, result.task)


def test_a_variant_whose_definition_was_edited_is_found(tmp_path: Path) -> None:
    place, variant = places(GOLDEN / "windowed", Topic.POOL, lambda event: isinstance(event, VariantVerified))[0]
    definition = replace(variant.definition, initial_state="{}")
    report = replayed(forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, definition=definition)))
    assert Stage.VARIANT in {one.stage for one in report.divergences}


def test_rules_that_are_not_those_the_epoch_was_opened_with_are_found(tmp_path: Path) -> None:
    place, opened = places(GOLDEN / "windowed", Topic.EPOCHS, lambda event: isinstance(event, EpochOpened))[1]
    rules = opened.rules.replace('"alpha_low":"0.25"', '"alpha_low":"0.3"')
    first = first_of(replayed(forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, rules=rules))))
    assert (first.stage, first.epoch, first.path) == (Stage.SETTINGS, 2, "measure.alpha_low")
    assert (first.recorded, first.recomputed) == ('"0.25"', '"0.3"')


def test_one_edit_is_one_place_and_not_a_cascade(tmp_path: Path) -> None:
    place, selection = places(GOLDEN / "windowed", Topic.SEALS, lambda event: isinstance(event, SelectionClosed))[3]
    archive = forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, digest="0" * 64))
    steps = {one.step for one in replayed(archive).divergences}
    assert steps <= {selection.step, selection.step + 1}, "the next link of the chain breaks too, and no other"


def test_a_task_alone_is_replayed_on_its_own_partition(tmp_path: Path) -> None:
    place, retired = places(GOLDEN / "windowed", Topic.POOL, lambda event: isinstance(event, TaskRetired))[0]
    archive = forge(GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, rule="pruning"))
    alone = replayed(archive, ReplayOptions(task=retired.task, jobs=1))
    assert first_of(alone).task == retired.task
    assert alone.counts.groups < replayed(archive).counts.groups
    assert {one.task for one in alone.divergences} <= {"", retired.task}


def test_bytes_that_are_no_event_stop_no_replay(tmp_path: Path) -> None:
    place, _ = places(GOLDEN / "windowed", Topic.MEASUREMENTS, lambda _: True)[0]
    assert replayed(forge(GOLDEN / "windowed", tmp_path, place, lambda _: b"noise")).agrees


def test_what_keeps_a_run_from_being_made_again_is_said_by_name(tmp_path: Path) -> None:
    place, opened = places(GOLDEN / "retiring", Topic.EPOCHS, lambda event: isinstance(event, EpochOpened))[0]
    archive = forge(
        GOLDEN / "retiring", tmp_path, place, lambda event: replace(event, model_digest="ab" * 32, code_revision="c0de")
    )
    here = Provenance("another", {**opened.packages, "fastavro": "0.0"})
    report = replay(ArchiveSource(archive), ALONE, here)
    assert {limit.name for limit in report.limits} >= {
        LimitName.POLICY,
        LimitName.REVISION,
        LimitName.PACKAGES,
        LimitName.TRAJECTORIES,
    }
    assert report.agrees, "it is replayed from its facts all the same"


def test_results_that_the_log_no_longer_has_are_a_limit_and_not_a_divergence(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "retiring", tmp_path / "archive")
    shutil.rmtree(tmp_path / "archive" / "rollouts" / "00000")
    kept = read_partition(GOLDEN / "retiring", Topic.ROLLOUTS, 0, start=1)
    seal(tmp_path / "archive", Topic.ROLLOUTS, 0, kept)
    report = replayed(tmp_path / "archive")
    assert LimitName.ROLLOUTS in {limit.name for limit in report.limits}
    assert report.agrees
    assert report.counts.selections > 0


def test_an_archive_has_equal_bytes_when_nothing_is_edited(tmp_path: Path) -> None:
    place, event = places(GOLDEN / "windowed", Topic.POOL, lambda event: isinstance(event, TaskRetired))[0]
    same: Callable[[Any], Any] = encode
    assert replayed(forge(GOLDEN / "windowed", tmp_path, place, same)).agrees
    assert event.rule
