"""The quick way to a well-formed event accepts nothing that decoding finds fault with, and all that fills a log."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from schemas.codec import decode, decode_plain, encode
from schemas.envelope import Producer, stamp
from schemas.errors import SchemaError
from schemas.rollouts import GroupRequested, TaskMeasured
from schemas.topics import Topic
from streams.archive.read import archived_partitions, read_partition
from streams.audit.verify.archive import run_of
from streams.audit.verify.form import Recogniser
from streams.audit.verify.identity import Expected, check_identity
from streams.audit.verify.values import check_values
from streams.measure.fold import evolve
from streams.measure.state import MeasureState
from tests.streams.rollout_log import barrier, expected, failed, live, result

GOLDEN = Path(__file__).parents[3] / "golden" / "archives"
FILLED = (Topic.ROLLOUTS, Topic.ASSIGNMENTS, Topic.MEASUREMENTS, Topic.SEALS)
NAN = float("nan")
PLACE = Expected(Topic.ROLLOUTS, 0, "run", 1)


def _accepts(expected: Expected, key: bytes | None, value: bytes) -> bool:
    return Recogniser(expected).attempts(key, value, []) is not None


def _is_faultless(expected: Expected, key: bytes | None, value: bytes) -> bool:
    try:
        kind, _, record = decode_plain(value)
    except SchemaError:
        return False
    return check_identity(expected, key, kind, record) is None and check_values(kind, record) is None


def _golden(name: str = "defaults") -> list[tuple[Expected, bytes, bytes]]:
    archive = GOLDEN / name
    run, partitions = run_of(archive)
    return [
        (Expected(topic, number, run, partitions), record.key or b"", record.value or b"")
        for topic in FILLED
        for number in archived_partitions(archive, topic)
        for record in read_partition(archive, topic, number)
    ]


@pytest.mark.parametrize("name", ["defaults", "windowed"])
def test_all_that_fills_a_real_log_is_recognised(name: str) -> None:
    for place, key, value in _golden(name):
        if decode_plain(value).kind not in ("LearnerStarted", "BarrierReached", "SelectionClosed"):
            assert _accepts(place, key, value)


def test_ids_and_attempts_are_those_of_the_event() -> None:
    ids: list[bytes] = []
    event = result(passed=(0, 1, None, 2))
    assert Recogniser(PLACE).attempts(b"t", encode(event), ids) == 4
    assert ids == [event.envelope.event_id.encode()]


def test_nothing_is_recognised_that_decoding_finds_fault_with() -> None:
    rng = Random(1)
    frames = _golden() + _golden("windowed")
    seals = [frame for frame in frames if frame[0].topic is Topic.SEALS]
    accepted = 0
    for _ in range(9000):
        place, key, value = rng.choice(rng.choice((frames, seals)))
        changed = bytearray(value)
        for _ in range(rng.choice((1, 1, 2))):
            position = rng.randrange(len(changed))
            match rng.randrange(3):
                case 0:
                    changed[position] ^= 1 << rng.randrange(8)
                case 1:
                    changed[position] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
                case 2:
                    del changed[position]
        if _accepts(place, key, bytes(changed)):
            accepted += 1
            assert _is_faultless(place, key, bytes(changed))
    assert accepted > 100


@pytest.mark.parametrize(
    "slot",
    [
        live(3),
        live(1, turns_passed=2),
        live(1, turns_passed=-1),
        live(1, outcomes=(True, True)),
        live(1, outcomes=(False, True)),
        live(0, outcomes=(False, False)),
        live(1, turns_total=3),
        live(1, tokens=-1),
        live(1, latency=-1),
        live(1, tool_calls=-1),
        live(1, policy_version=-1),
        live(1, trajectory="AB" * 32),
        live(1, trajectory="ab"),
        live(1, reason="timeout"),
        live(1, status="done"),
        failed("tired"),
        failed(None),
        replace(failed(), turns_passed=3),
    ],
)
def test_an_attempt_that_cannot_be_is_not_recognised_and_is_a_fault(slot: Any) -> None:
    event = result(passed=(0, 1))
    value = encode(replace(event, slots=(live(0), slot)))
    assert not _accepts(PLACE, b"t", value)
    assert not _is_faultless(PLACE, b"t", value)


@pytest.mark.parametrize(
    "slot",
    [live(0), live(1), live(2), live(1, outcomes=(True,)), live(0, outcomes=()), live(1, reason=""), failed(),
     live(2, trajectory=""), failed("worker_lost"), replace(failed(), outcomes=(True,), tokens=10**15)],
)  # fmt: skip
def test_an_attempt_that_can_be_is_recognised_and_is_faultless(slot: Any) -> None:
    value = encode(replace(result(passed=(0, 1)), slots=(live(0), slot)))
    assert _accepts(PLACE, b"t", value)
    assert _is_faultless(PLACE, b"t", value)


def test_what_is_out_of_place_is_not_recognised() -> None:
    value = encode(result())
    assert _accepts(PLACE, b"t", value)
    assert not _accepts(PLACE, b"u", value)
    assert not _accepts(PLACE, None, value)
    assert not _accepts(replace(PLACE, run="other"), b"t", value)
    assert not _accepts(replace(PLACE, topic=Topic.MEASUREMENTS), b"t", value)
    assert not _accepts(Expected(Topic.ROLLOUTS, 7, "run", 8), b"t", value)
    assert not _accepts(PLACE, b"t", encode(replace(result(), group="another")))
    assert not _accepts(PLACE, b"t", value + b"\0")


@pytest.mark.parametrize(
    ("mean", "fine"), [(0.5, True), (None, True), (1.5, False), (-0.1, False), (float("nan"), False)]
)
def test_shares_are_held_to_their_range(mean: float | None, fine: bool) -> None:
    place = Expected(Topic.MEASUREMENTS, 0, "run", 1)
    event = TaskMeasured("g", 1, 1, "t", "train", "base", mean, 0.5, 0.1, 4, 0, 4, 2, 1, "boundary", 1)
    value = encode(stamp(event, run_id="run", occurred_at=1, producer="measure"))
    assert _accepts(place, b"t", value) is _is_faultless(place, b"t", value) is fine


@pytest.mark.parametrize(("k", "fine"), [(1, True), (63, True), (64, True), (1024, True), (1025, False), (0, False)])
def test_attempts_are_held_to_their_number(k: int, fine: bool) -> None:
    place = Expected(Topic.ASSIGNMENTS, 0, "run", 1)
    event = GroupRequested(1, 1, 1, "t", "g", "train", k, 2, "base", 1, 1.0, 1, 99, 5)
    value = encode(stamp(event, run_id="run", occurred_at=1, producer="learner"))
    assert _accepts(place, b"t", value) is _is_faultless(place, b"t", value) is fine


def test_a_task_in_another_script_is_decoded_instead_and_is_faultless() -> None:
    value = encode(result(task="Aufgäbe"))
    assert not _accepts(PLACE, "Aufgäbe".encode(), value)
    assert _is_faultless(PLACE, "Aufgäbe".encode(), value)
    assert decode(value).task == "Aufgäbe"


def _sealed(*groups: Any, **changes: Any) -> tuple[Expected, bytes]:
    """A seal of one live, one mixed and one missing group, changed."""
    state = MeasureState(0)
    events = [
        result("a", (0, 1, 2, 2)),
        result("b", (None, 1, 2, 0)),
        barrier(expected("a"), expected("b"), expected("c"), last=True),
    ]
    for offset, event in enumerate(events):
        evolved = evolve(state, offset, event)
        state = evolved.state
    (seal,) = evolved.seals
    changed = replace(seal, **changes)
    if groups:
        changed = replace(changed, groups=groups)
    event = stamp(changed, run_id="run", occurred_at=1, producer=Producer.MEASURE)
    return Expected(Topic.SEALS, 0, "run", 1), encode(event)


def test_a_seal_with_live_failed_and_missing_slots_is_recognised() -> None:
    place, value = _sealed()
    assert _accepts(place, b"run", value)
    assert _is_faultless(place, b"run", value)
    assert {len(group.reasons) for group in decode(value).groups} == {4}
    assert len(decode(value).state) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"passed": (0, 1, 2)},
        {"passed": (0, 1, 2, 3)},
        {"passed": (0, 1, 2, -1)},
        {"passed": (0, 1, 2, None)},
        {"reasons": ("", "", "", "timeout")},
        {"reasons": ("", "", "")},
        {"policy_versions": ()},
        {"trajectories": ()},
        {"zone": "middling"},
        {"purpose": "fun"},
        {"turns_total": 0},
    ],
)
def test_a_seal_with_a_group_that_cannot_be_is_not_recognised_and_is_a_fault(change: dict[str, Any]) -> None:
    _, value = _sealed()
    groups = decode(value).groups
    place, changed = _sealed(replace(groups[0], **change), *groups[1:])
    assert not _accepts(place, b"run", changed)
    assert not _is_faultless(place, b"run", changed)


@pytest.mark.parametrize(
    "change",
    [
        {"partition": 1},
        {"chunk": 1},
        {"step": -1},
        {"rules": "{}"},
        {"digest": "abc"},
        {"late": -1},
        {"pool_offset": -3},
    ],
)
def test_a_seal_that_cannot_be_is_not_recognised_and_is_a_fault(change: dict[str, Any]) -> None:
    place, changed = _sealed(**change)
    assert not _accepts(place, b"run", changed)
    assert not _is_faultless(place, b"run", changed)
