from dataclasses import replace

from prometheus_client.exposition import generate_latest

from streams.service.metrics import Standing, StreamsMetrics
from streams.service.notices import Notice
from tests.streams.rollout_log import barrier, expected, folded, result


def value(metrics: StreamsMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_a_seal_tells_what_was_late_duplicate_missing_refused_and_failed() -> None:
    metrics = StreamsMetrics()
    events = [
        result("a", (1, None, 2, 0)),
        result("a"),
        result("wrong", k=9),
        result("b", (9, 1, 2, 0)),
        barrier(expected("a"), expected("b"), expected("gone")),
        result("a"),
        barrier(step=2),
    ]
    for evolved in folded(events):
        if evolved.seals:
            metrics.sealed(evolved.seals, covered=4)
    assert value(metrics, "rods_streams_seals_total") == 2
    assert value(metrics, "rods_streams_late_total") == 1
    assert value(metrics, "rods_streams_duplicate_total") == 1
    assert value(metrics, "rods_streams_missing_total") == 1
    assert value(metrics, "rods_streams_refused_total") == 1
    assert value(metrics, "rods_streams_failed_slots_total", reason="timeout") == 1
    assert value(metrics, "rods_streams_failed_slots_total", reason="impossible") == 1
    assert value(metrics, "rods_streams_batch_events_sum") == 8


def test_what_an_operator_should_hear_of_is_counted_from_zero() -> None:
    metrics = StreamsMetrics()
    metrics.noticed(Notice.SUPERSEDED)
    counted = {notice: value(metrics, "rods_streams_notices_total", notice=notice) for notice in Notice}
    assert counted == {Notice.SUPERSEDED: 1, Notice.CONTRADICTED: 0, Notice.UNKNOWN_SCHEMA: 0}


def test_a_reason_from_the_log_never_becomes_a_label() -> None:
    metrics = StreamsMetrics()
    hostile = result("a", (1, None, 2, 0))
    slots = tuple(replace(slot, reason=slot.reason and "x" * 50) for slot in hostile.slots)
    for evolved in folded([result("a", slots=slots), barrier(expected("a"))]):
        if evolved.seals:
            metrics.sealed(evolved.seals, covered=2)
    assert value(metrics, "rods_streams_failed_slots_total", reason="other") == 1
    assert b"xxx" not in generate_latest(metrics.registry)


def test_lag_is_read_when_it_is_asked_for_and_left_out_where_no_end_is_known() -> None:
    places = {("rods.rollouts", 0): Standing(3, 10), ("rods.rollouts", 1): Standing(3, None)}
    metrics = StreamsMetrics(lambda: places)
    assert value(metrics, "rods_streams_lag", topic="rods.rollouts", partition="0") == 7
    places["rods.rollouts", 0] = Standing(12, 10)
    assert value(metrics, "rods_streams_lag", topic="rods.rollouts", partition="0") == 0
    assert value(metrics, "rods_streams_position", topic="rods.rollouts", partition="1") == 3
    assert value(metrics, "rods_streams_lag", topic="rods.rollouts", partition="1") is None


def test_events_are_counted_by_stream_and_an_assignment_by_its_time() -> None:
    metrics = StreamsMetrics()
    metrics.took("measure")
    metrics.recovered(0.3, partitions=4)
    assert value(metrics, "rods_streams_events_total", stream="measure") == 1
    assert value(metrics, "rods_streams_recovery_seconds_sum") == 0.3
    assert value(metrics, "rods_streams_partitions") == 4
    metrics.revoked()
    assert value(metrics, "rods_streams_partitions") == 0
