from dataclasses import replace
from pathlib import Path

from schemas.rollouts import RolloutFinished
from schemas.seals import PartitionSealed
from schemas.topics import Topic
from streams.audit.compare.runs import compare_runs
from streams.audit.load.source import ArchiveSource
from tests.streams.audit.forge import GOLDEN, forge, places


def test_a_run_equals_itself() -> None:
    contrast = compare_runs(ArchiveSource(GOLDEN / "windowed"), ArchiveSource(GOLDEN / "windowed"))
    assert contrast.equal
    assert contrast.settings == ()
    assert [epoch.epoch for epoch in contrast.epochs] == [0, 1, 2, 3]


def test_runs_under_other_rules_differ_in_their_settings_and_from_the_epoch_on_that_the_rules_touch() -> None:
    contrast = compare_runs(ArchiveSource(GOLDEN / "retiring"), ArchiveSource(GOLDEN / "retiring-otherwise"))
    paths = {found.path for found in contrast.settings}
    assert {"rules.pool.drift_high", "rules.pool.drift_low", "rules.measure.alpha_low", "rules.select.quota"} <= paths
    first = contrast.epochs[1]
    assert first.groups == (0, 0), "the same seed asks for the same groups"
    assert first.rollouts == (), "and a scripted policy answers alike"
    assert any(first.seeds)
    assert not contrast.equal


def test_a_group_with_other_results_is_named(tmp_path: Path) -> None:
    place, seal = places(
        GOLDEN / "windowed", Topic.SEALS, lambda e: isinstance(e, PartitionSealed) and len(e.groups) > 0
    )[0]
    group = seal.groups[0]
    other = replace(group, passed=tuple(0 if turns else 1 for turns in group.passed))
    forged = forge(
        GOLDEN / "windowed", tmp_path, place, lambda event: replace(event, groups=(other, *event.groups[1:]))
    )
    contrast = compare_runs(ArchiveSource(GOLDEN / "windowed"), ArchiveSource(forged))
    assert contrast.first is not None
    assert contrast.first.rollouts == (group.group,)
    assert contrast.settings == ()
    assert places(forged, Topic.ROLLOUTS, lambda event: isinstance(event, RolloutFinished))
