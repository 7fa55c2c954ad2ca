import json
from dataclasses import replace
from typing import Any

import pytest

from eventlog.reader import LogRecord
from schemas.catalogue import BY_KIND, EVENT_TYPES
from schemas.codec import MAGIC, encode
from schemas.epochs import StepClosed
from schemas.errors import UnknownFingerprintError
from schemas.pool import TaskRegistered
from schemas.rollouts import TaskMeasured, TrajectoryRecorded
from schemas.topics import KINDS, Topic
from streams.warehouse.tables import row_of, table_of
from tests.golden import events


def _topic_of(kind: str) -> Topic:
    return next(topic for topic in Topic if kind in KINDS[topic])


def _record(value: bytes | None, topic: Topic = Topic.POOL, timestamp: int = 5) -> LogRecord:
    return LogRecord(topic.named("t."), 1, 9, timestamp, b"key", value, ())


def _row(event: Any) -> dict[str, Any]:
    topic = _topic_of(event.KIND)
    return dict(zip(table_of(topic).columns, row_of(topic, _record(encode(event), topic)), strict=True))


@pytest.mark.parametrize("filling", events.SAMPLES)
@pytest.mark.parametrize("kind", sorted(BY_KIND))
def test_every_event_has_a_row_with_its_place_envelope_and_body(kind: str, filling: str) -> None:
    event = events.sample(BY_KIND[kind], filling)
    row = _row(event)
    assert (row["topic"], row["partition"], row["offset"]) == (_topic_of(kind).named("t."), 1, 9)
    assert (row["kind"], row["event_id"], row["run_id"]) == (kind, event.envelope.event_id, event.envelope.run_id)
    assert json.loads(row["body"]) is not None
    assert row == _row(event)


def test_there_is_one_table_a_topic_and_every_kind_has_one() -> None:
    assert len({table_of(topic).name for topic in Topic}) == 10
    assert set().union(*KINDS.values()) == {event_type.KIND for event_type in EVENT_TYPES}


def test_the_fields_that_dashboards_need_are_columns() -> None:
    row = _row(replace(events.sample(TaskMeasured, "full"), mean=0.5, zone="boundary", purpose="train", epoch=3))
    assert (row["mean"], row["zone"], row["purpose"], row["epoch"]) == (0.5, "boundary", "train", 3)
    registered = events.sample(TaskRegistered, "full")
    assert _row(registered)["task"] == registered.definition.task
    assert _row(registered)["turns_count"] == len(registered.definition.turns)


def test_what_only_the_learner_needs_stays_in_the_archive() -> None:
    body = json.loads(_row(events.sample(TrajectoryRecorded, "full"))["body"])
    assert not {"token_ids", "logprobs", "loss_mask"} & set(body)
    assert "messages" in body


def test_numbers_that_json_lacks_become_null_in_the_body() -> None:
    event = replace(events.sample(StepClosed, "full"), loss=float("nan"))
    assert json.loads(_row(event)["body"])["loss"] is None


@pytest.mark.parametrize("value", [None, b"", b"hello", MAGIC, encode(events.sample(StepClosed, "full"))[:-1]])
def test_bytes_that_are_no_event_give_a_row_that_says_so(value: bytes | None) -> None:
    row = dict(zip(table_of(Topic.POOL).columns, row_of(Topic.POOL, _record(value)), strict=True))
    assert (row["kind"], row["offset"], row["event_id"]) == ("undecodable", 9, "")


@pytest.mark.parametrize("topic", Topic)
def test_an_event_that_the_topic_does_not_carry_fills_none_of_its_columns(topic: Topic) -> None:
    event = events.sample(TaskMeasured if topic is not Topic.MEASUREMENTS else StepClosed, "full")
    row = dict(zip(table_of(topic).columns, row_of(topic, _record(encode(event), topic)), strict=True))
    own = list(table_of(topic).columns)[list(table_of(topic).columns).index("body") + 1 :]
    assert (row["kind"], row["event_id"]) == (event.KIND, event.envelope.event_id)
    assert {row[name] for name in own} == {None}


def test_a_newer_writers_event_is_not_taken_for_garbage() -> None:
    with pytest.raises(UnknownFingerprintError):
        row_of(Topic.POOL, _record(MAGIC + bytes(12)))


def test_times_outside_the_range_of_the_table_are_clamped() -> None:
    event = events.sample(StepClosed, "full")
    event = replace(event, envelope=replace(event.envelope, occurred_at=2**62))
    row = dict(
        zip(
            table_of(Topic.EPOCHS).columns,
            row_of(Topic.EPOCHS, _record(encode(event), Topic.EPOCHS, timestamp=-1)),
            strict=True,
        )
    )
    assert row["occurred_at"] == 4_102_444_800_000_000
    assert row["timestamp"] == 0
