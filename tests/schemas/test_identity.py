import uuid
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.catalogue import BY_KIND, EVENT_TYPES
from schemas.codec import encode
from schemas.envelope import UNSTAMPED, Envelope, derive, event_id, stamp
from schemas.identity import content_digest, group_id, seed_id, trajectory_digest, variant_id
from schemas.seals import BoundarySeedSelected
from schemas.task import TaskDefinition, Turn
from tests.golden.events import sample
from tests.schemas.strategies import events

TASK = TaskDefinition("t", "workbench", "base", "s", ("Files",), "{}", (Turn(("do",), ("a()",)),))
CAUSE = Envelope("cause", "run", 42, "select", correlation_id="story")
PARTS = st.lists(st.text(max_size=6), max_size=4).map(tuple)

NATURAL_KEYS = {
    "LearnerStarted": ("generation", "nonce"),
    "EpochOpened": ("epoch",),
    "StepOpened": ("epoch", "step"),
    "StepClosed": ("epoch", "step"),
    "EpochClosed": ("epoch",),
    "PolicyPublished": ("version",),
    "PolicyEvaluated": ("version", "task_set", "temperature"),
    "AlarmRaised": ("kind", "epoch", "step"),
    "GroupRequested": ("epoch", "step", "task", "group"),
    "RolloutFinished": ("group",),
    "BarrierReached": ("epoch", "step", "partition"),
    "TrajectoryRecorded": ("group", "execution", "attempt"),
    "TaskMeasured": ("group",),
    "PartitionSealed": ("epoch", "step", "partition", "chunk"),
    "SelectionClosed": ("epoch", "step"),
    "BoundarySeedSelected": ("epoch", "step", "task"),
    "StageFinished": ("seed", "index", "attempt", "stage", "ordinal"),
    "VariantRejected": ("seed", "index", "attempt", "stage"),
    "SeedSettled": ("seed",),
    "BoundaryOpened": ("epoch",),
    "TaskInjected": ("epoch", "task"),
    "TaskRetired": ("epoch", "task"),
    "TaskProbed": ("epoch", "task"),
    "PoolMaterialized": ("epoch",),
    "OperatorDecided": ("decision_id",),
    "EventRefused": ("topic", "partition", "offset"),
}


def test_ids_are_these_for_good() -> None:
    assert event_id("run", "Kind", ("a", "b")) == "27e36ef2-f80e-5253-87cb-41f19d84023b"
    assert group_id(1, 2, 3, "t", "train") == "0647dcef170c65a66afb8292dba0e5ff"
    assert seed_id(1, 2, 3, "t") == "1412ba1e1fffe57f0778a1cb3d192d7b"
    assert content_digest(TASK) == "2185f3d43efeddbf5ee527897cb39b1f51aed06d837f988bd5baaa4b9aabfdbe"
    assert variant_id("s", "c") == "v-9ac76825cad7c412100a14fa"
    digest = trajectory_digest((1, 2), (0.0, -0.5), b"\x00\x01", "[]")
    assert digest == "9490a9d44d87c1421445f030d94d801803508acc682e69c860c264be80217b44"


@given(PARTS, PARTS)
def test_different_natural_keys_have_different_ids(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (event_id("r", "K", one) == event_id("r", "K", other)) == (one == other)
    assert uuid.UUID(event_id("r", "K", one)).version == 5


@pytest.mark.parametrize(("kind", "names"), NATURAL_KEYS.items())
def test_the_natural_key_is_made_of_these_fields(kind: str, names: tuple[str, ...]) -> None:
    event = sample(BY_KIND[kind], "full")
    assert event.natural_key == tuple(str(getattr(event, name)) for name in names)


@pytest.mark.parametrize("kind", ["TaskRegistered", "VariantVerified"])
def test_a_definition_is_known_by_its_task(kind: str) -> None:
    event = sample(BY_KIND[kind], "full")
    assert event.natural_key == (event.definition.task,)


def test_every_kind_has_a_natural_key_stated_here() -> None:
    assert {*NATURAL_KEYS, "TaskRegistered", "VariantVerified"} == set(BY_KIND)


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_an_event_is_frozen_and_starts_without_an_envelope(event_type: type[Any]) -> None:
    assert fields(event_type)[-1].name == "envelope"
    assert fields(event_type)[-1].default is UNSTAMPED
    event = sample(event_type, "full")
    assert event_type.__name__ == event.KIND
    with pytest.raises(AttributeError):
        event.envelope = UNSTAMPED


@settings(max_examples=50, deadline=None)
@given(events())
def test_deriving_an_event_again_gives_the_same_bytes(event: Any) -> None:
    derived = derive(event, CAUSE, "select")
    assert encode(derived) == encode(derive(replace(event, envelope=UNSTAMPED), CAUSE, "select"))
    assert derived.envelope.occurred_at == CAUSE.occurred_at
    assert derived.envelope.causation_id == CAUSE.event_id
    assert derived.envelope.run_id == CAUSE.run_id


def test_a_derived_event_keeps_the_story_unless_it_starts_its_own() -> None:
    event = sample(BoundarySeedSelected, "bare")
    assert derive(event, CAUSE, "select").envelope.correlation_id == "story"
    assert derive(event, CAUSE, "select", "another").envelope.correlation_id == "another"
    assert stamp(event, run_id="r", occurred_at=1, producer="select").envelope.causation_id is None


def test_a_clock_or_a_producer_does_not_change_the_id() -> None:
    event = sample(BoundarySeedSelected, "full")
    one = stamp(event, run_id="r", occurred_at=1, producer="select")
    other = stamp(event, run_id="r", occurred_at=2, producer="learner")
    assert one.envelope.event_id == other.envelope.event_id
    assert stamp(event, run_id="s", occurred_at=1, producer="select").envelope.event_id != one.envelope.event_id


def test_content_is_neither_id_nor_parent() -> None:
    assert content_digest(replace(TASK, task="other", parent="p")) == content_digest(TASK)
    assert content_digest(replace(TASK, initial_state="[]")) != content_digest(TASK)


def test_a_trajectory_digest_tells_where_one_part_ends() -> None:
    assert trajectory_digest((), (), b"a", "b") != trajectory_digest((), (), b"ab", "")
    assert trajectory_digest((1,), (), b"", "") != trajectory_digest((), (), (1).to_bytes(8, "little"), "")


@given(st.text(max_size=8), st.text(max_size=8), PARTS)
def test_an_event_id_is_the_uuid5_of_its_parts_with_their_lengths(run: str, kind: str, key: tuple[str, ...]) -> None:
    namespace = uuid.UUID("6f1d1c7e-5e4b-5d0a-9a53-0d6b5c1f2a90")
    name = "".join(f"{len(part)}:{part}" for part in (run, kind, *key))
    assert event_id(run, kind, key) == str(uuid.uuid5(namespace, name))
