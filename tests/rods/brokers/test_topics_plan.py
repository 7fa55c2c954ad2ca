"""What `rods topics apply` would do, fact by fact."""

from dataclasses import replace

import pytest

from rods.brokers.topics_file import TopicSpec, load_topics
from rods.brokers.topics_plan import FoundTopic, RunUnder, SettingChange, TopicAction, plan
from rods.errors import UserError
from schemas.topics import Topic

SPECS = {spec.topic: spec.on(3) for spec in load_topics("t.", 4)}
ROLLOUTS, POOL = SPECS[Topic.ROLLOUTS], SPECS[Topic.POOL]


def as_asked(spec: TopicSpec) -> FoundTopic:
    return FoundTopic(spec.name, spec.partitions, spec.replication, dict(spec.config))


def test_an_absent_topic_is_created() -> None:
    [change] = plan([ROLLOUTS], {}, None)
    assert (change.action, change.changes_something) == (TopicAction.CREATE, True)


def test_a_topic_as_asked_for_is_left_alone() -> None:
    [change] = plan([ROLLOUTS], {ROLLOUTS.name: as_asked(ROLLOUTS)}, None)
    assert (change.action, change.differences, change.notes) == (TopicAction.UNCHANGED, (), ())


def test_a_setting_that_differs_is_altered_and_one_the_file_does_not_name_is_not() -> None:
    config = {**POOL.config, "retention.ms": "3600000", "flush.ms": "7"}
    [change] = plan([POOL], {POOL.name: replace(as_asked(POOL), config=config)}, None)
    assert change.action is TopicAction.ALTER
    assert change.differences == (SettingChange("retention.ms", "3600000", "-1"),)


def test_fewer_partitions_grow_where_no_run_is() -> None:
    [change] = plan([ROLLOUTS], {ROLLOUTS.name: replace(as_asked(ROLLOUTS), partitions=2)}, None)
    assert change.action is TopicAction.GROW


def test_more_partitions_than_asked_for_are_refused() -> None:
    with pytest.raises(UserError, match=r"t\.rollouts has 8 partitions .* --partitions 8"):
        plan([ROLLOUTS], {ROLLOUTS.name: replace(as_asked(ROLLOUTS), partitions=8)}, None)


@pytest.mark.parametrize("recorded", [2, None])
def test_under_a_run_no_partition_is_added(recorded: int | None) -> None:
    found = {ROLLOUTS.name: replace(as_asked(ROLLOUTS), partitions=2)}
    with pytest.raises(UserError, match=r"holds the run r1, which keeps the 2 partitions .* --partitions 2"):
        plan([ROLLOUTS], found, RunUnder("r1", recorded))


def test_under_a_run_a_topic_that_is_missing_comes_with_the_runs_partitions_only() -> None:
    with pytest.raises(UserError, match="which keeps the 2 partitions"):
        plan([ROLLOUTS], {}, RunUnder("r1", 2))
    [change] = plan([ROLLOUTS], {}, RunUnder("r1", 4))
    assert change.action is TopicAction.CREATE


def test_under_a_run_settings_may_change() -> None:
    config = {**ROLLOUTS.config, "retention.ms": "1"}
    [change] = plan([ROLLOUTS], {ROLLOUTS.name: replace(as_asked(ROLLOUTS), config=config)}, RunUnder("r1", 4))
    assert change.action is TopicAction.ALTER


def test_a_refusal_comes_before_any_change() -> None:
    with pytest.raises(UserError):
        plan([POOL, ROLLOUTS], {ROLLOUTS.name: replace(as_asked(ROLLOUTS), partitions=8)}, None)


def test_a_broker_that_tells_no_settings_is_noted_and_nothing_is_altered() -> None:
    [change] = plan([POOL], {POOL.name: replace(as_asked(POOL), config=None)}, None)
    assert change.action is TopicAction.UNCHANGED
    assert "does not tell" in change.notes[0]


def test_replicas_are_not_moved_but_named() -> None:
    [change] = plan([POOL], {POOL.name: replace(as_asked(POOL), replication=1)}, None)
    assert change.action is TopicAction.UNCHANGED
    assert "replication is 1 where 3" in change.notes[0]
