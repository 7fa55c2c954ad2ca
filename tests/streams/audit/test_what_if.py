from pathlib import Path

import pytest

from schemas.epochs import EpochOpened, StepOpened
from schemas.pool import PoolMaterialized, TaskInjected, TaskRetired
from schemas.rollouts import Purpose
from schemas.rules import Rules
from schemas.seals import SelectionClosed
from schemas.topics import Topic
from streams.audit.compare.changes import EpochChanges
from streams.audit.errors import AuditError
from streams.audit.load.source import ArchiveSource
from streams.audit.overlay import Overlay
from streams.audit.recompute.pool_epoch import pool_of
from streams.audit.what_if import what_if
from streams.pool.decide import probes_of
from tests.streams.audit.forge import GOLDEN, places

OTHERWISE = (
    "pool.drift_high=0.7",
    "pool.drift_low=0.1",
    "measure.alpha_low=0.3",
    "select.quota=1",
)
"""What the golden run `retiring-otherwise` had set otherwise than `retiring`."""


INJECTING = (
    "pool.drift_high=0.7",
    "pool.drift_low=0.1",
    "pool.inject_share=1",
    "measure.alpha_low=0.3",
    "select.quota=1",
)
"""What the golden run `retiring-injecting` had set otherwise than `retiring`."""


def decided(archive: Path, *assignments: str) -> list[EpochChanges]:
    return what_if(ArchiveSource(archive), Overlay.parse(assignments))


@pytest.mark.parametrize("archive", sorted(GOLDEN.iterdir()), ids=lambda path: path.name)
def test_the_recorded_rules_change_nothing_and_give_the_recorded_digests(archive: Path) -> None:
    epochs = decided(archive)
    assert [epoch.changes for epoch in epochs] == [0] * len(epochs)
    assert [epoch.digest for epoch in epochs] == [epoch.recorded_digest for epoch in epochs]


def test_the_first_epoch_under_other_thresholds_is_that_of_a_run_under_them() -> None:
    tried = decided(GOLDEN / "retiring", *OTHERWISE)[1]
    real = GOLDEN / "retiring-otherwise"
    selections = [e for _, e in places(real, Topic.SEALS, lambda e: isinstance(e, SelectionClosed)) if e.epoch == 1]
    retired = [e for _, e in places(real, Topic.POOL, lambda e: isinstance(e, TaskRetired)) if e.epoch == 1]
    assert tried.seeds == [(seed.task, closed.step) for closed in selections for seed in closed.seeds]
    assert tried.retirements == [(event.task, event.rule) for event in retired]
    assert tried.seeds
    assert tried.retirements
    assert tried.changes > 0


def test_the_first_epochs_pool_under_other_thresholds_is_bit_for_bit_that_of_a_run_under_them() -> None:
    """The digest covers members, queue, retired tasks with their probes, streaks and rules, and the pool before."""
    first, tried = decided(GOLDEN / "retiring", *INJECTING)[:2]
    real = GOLDEN / "retiring-injecting"
    pools = {e.epoch: e for _, e in places(real, Topic.POOL, lambda e: isinstance(e, PoolMaterialized))}
    assert (first.digest, tried.digest) == (pools[0].digest, pools[1].digest)
    selections = [e for _, e in places(real, Topic.SEALS, lambda e: isinstance(e, SelectionClosed)) if e.epoch == 1]
    assert tried.seeds == [(seed.task, closed.step) for closed in selections for seed in closed.seeds]
    decisions = [e for _, e in places(real, Topic.POOL, lambda e: getattr(e, "epoch", 0) == 1)]
    assert tried.injections == [event.task for event in decisions if isinstance(event, TaskInjected)]
    retired = [event for event in decisions if isinstance(event, TaskRetired)]
    assert tried.retirements == [(event.task, event.rule) for event in retired]
    differing = (tried.seeds_dropped, tried.injections_added, tried.retirements_added)
    assert [len(one) for one in differing] == [1, 1, 3], "the recorded rules decide otherwise"
    opened = [e for _, e in places(real, Topic.EPOCHS, lambda e: isinstance(e, StepOpened)) if e.epoch == 2]
    probed = {group.task for step in opened for group in step.groups if group.purpose == Purpose.PROBE}
    (rules,) = {e.rules for _, e in places(real, Topic.EPOCHS, lambda e: isinstance(e, EpochOpened))}
    pool = pool_of(ArchiveSource(real), 1)
    assert pool.state.digest == tried.digest
    assert probed == set(probes_of(pool.state, Rules.parse(rules)))
    assert set() < probed <= {task for task, _ in tried.retirements}


def test_the_first_epoch_of_the_other_run_under_the_first_ones_rules_is_the_first_ones() -> None:
    back = ("pool.drift_high=0.9", "pool.drift_low=0.2", "measure.alpha_low=0.2", "select.quota=3")
    tried = decided(GOLDEN / "retiring-otherwise", *back)[1]
    there = decided(GOLDEN / "retiring")[1]
    assert (tried.seeds, tried.retirements) == (there.seeds, there.retirements)
    assert tried.unknown_seeds == len(tried.seeds_added) > 0


def test_every_difference_says_why_and_why_not() -> None:
    epochs = decided(GOLDEN / "windowed", "measure.alpha_low=0.4", "pool.drift_low=0.1")
    dropped = epochs[1].seeds_dropped
    assert [change.why_not for change in dropped] == ["its mean 3/8 is below alpha_low 0.4"] * 2
    kept = [change for epoch in epochs for change in epoch.retirements_dropped]
    assert any("is within 0.1 and 0.75" in change.why_not for change in kept)
    lost = [change for epoch in epochs for change in epoch.injections_dropped]
    assert any(change.why_not == "its seed was not selected" for change in lost)


@pytest.mark.parametrize(
    ("dropped", "assignment", "reason"),
    [
        ("seeds_dropped", "curriculum=static", "a static curriculum has no seeds"),
        ("seeds_dropped", "select.quota=0", "it ranked below the quota of 0"),
        ("seeds_dropped", "measure.min_variance=1", "is not above 1"),
        ("seeds_dropped", "measure.alpha_high=0.26", "is above alpha_high 0.26"),
        ("seeds_dropped", "select.cooldown_steps=100", "and the cooldown is 100 steps"),
        ("retirements_dropped", "pool.retire=false", "nothing is retired"),
        ("retirements_dropped", "pool.protect_originals=true", "originals are protected"),
        ("retirements_dropped", "pool.patience=5", "and the patience is 5"),
    ],
)
def test_a_decision_is_dropped_for_the_reason_that_holds(dropped: str, assignment: str, reason: str) -> None:
    changes = [change for epoch in decided(GOLDEN / "windowed", assignment) for change in getattr(epoch, dropped)]
    assert any(reason in change.why_not for change in changes), changes


def test_a_patience_of_two_would_have_avoided_the_evictions_at_a_first_bad_visit() -> None:
    epochs = decided(GOLDEN / "retiring")
    avoided, evictions = sum(one.avoided for one in epochs), sum(one.drift_evictions for one in epochs)
    assert (avoided, evictions) == (9, 9)
    spared = decided(GOLDEN / "retiring", "pool.patience=2")
    drift = [change for change in spared[1].retirements_dropped if change.why.startswith("drift")]
    assert len(drift) == epochs[1].avoided > 0
    windowed = decided(GOLDEN / "windowed")
    avoided, evictions = sum(one.avoided for one in windowed), sum(one.drift_evictions for one in windowed)
    assert (avoided, evictions) == (0, 10), "its patience is two already"


def test_a_setting_that_is_not_there_is_named_with_those_that_are() -> None:
    for assignment in ("measure.beta=1", "nope=1", "a.b.c=1", "measure=1"):
        with pytest.raises(
            AuditError, match=r"there is no setting '[a-z.]+'; what can be tried out: measure.alpha_high"
        ):
            decided(GOLDEN / "retiring", assignment)


def test_what_shapes_the_rollouts_cannot_be_tried_out() -> None:
    for assignment in ("rollout.k=4", "pool.probes_per_epoch=3", "seed=2", "synthesis.replans=1"):
        with pytest.raises(AuditError, match="cannot be tried out on recorded rollouts"):
            Overlay.parse([assignment])
    with pytest.raises(AuditError, match="given as name=value"):
        Overlay.parse(["measure.window"])
    with pytest.raises(AuditError, match="alpha_low"):
        decided(GOLDEN / "windowed", "measure.alpha_low=2")


def test_the_answer_up_to_an_epoch_is_that_of_its_epochs() -> None:
    overlay = Overlay.parse(["measure.alpha_low=0.4"])
    source = ArchiveSource(GOLDEN / "windowed")
    assert what_if(source, overlay, to_epoch=1) == what_if(source, overlay)[:2]
