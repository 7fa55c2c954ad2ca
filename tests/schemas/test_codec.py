import random
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.catalogue import EVENT_TYPES
from schemas.codec import HEADER_BYTES, MAGIC, MAX_EVENT_BYTES, decode, encode, kind_of_frame
from schemas.envelope import UNSTAMPED
from schemas.epochs import EpochOpened, LearnerStarted
from schemas.errors import SchemaError, UndecodableError, UnknownFingerprintError
from schemas.rollouts import TrajectoryRecorded
from schemas.seals import SelectionClosed
from tests.golden.events import sample
from tests.schemas.strategies import events, values

FRAMES = [encode(sample(event_type, "full")) for event_type in EVENT_TYPES]


def started(generation: Any = 1, nonce: Any = "n", envelope: Any = UNSTAMPED) -> LearnerStarted:
    return LearnerStarted(generation, nonce, envelope)


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_every_event_type_survives_the_round_trip(event_type: type[Any]) -> None:
    @settings(max_examples=30, deadline=None)
    @given(values(event_type))
    def survives(event: Any) -> None:
        assert decode(encode(event)) == event
        assert encode(decode(encode(event))) == encode(event)

    survives()


def test_maps_that_are_equal_give_equal_bytes_whatever_their_order() -> None:
    event = sample(EpochOpened, "full")
    forward = replace(event, packages={"a": "1", "b": "2"})
    backward = replace(event, packages={"b": "2", "a": "1"})
    assert forward == backward
    assert encode(forward) == encode(backward)


@pytest.mark.parametrize(
    "event",
    [
        started(generation=2**63),
        started(generation=-(2**63) - 1),
        started(nonce="\ud800"),
        started(nonce=5),
        started(generation=None),
        started(envelope=None),
    ],
)
def test_a_value_the_schema_cannot_hold_is_a_schema_error(event: LearnerStarted) -> None:
    with pytest.raises(SchemaError, match="LearnerStarted cannot be encoded"):
        encode(event)


@pytest.mark.parametrize("data", [b"", b"\xc3", MAGIC, MAGIC + b"\x00" * 7, b"{}", b"\xc3\x02" + b"\x00" * 20])
def test_bytes_without_the_frame_are_undecodable(data: bytes) -> None:
    with pytest.raises(UndecodableError, match="single-object"):
        decode(data)
    assert kind_of_frame(data) is None


def test_an_unknown_fingerprint_is_told_apart_from_garbage() -> None:
    with pytest.raises(UnknownFingerprintError) as caught:
        decode(MAGIC + b"\x01" * 8 + b"body")
    assert caught.value.fingerprint == b"\x01" * 8
    assert "\n" not in str(caught.value)


def test_an_event_above_the_limit_is_refused_unread() -> None:
    with pytest.raises(UndecodableError, match="exceeds the limit"):
        decode(FRAMES[0] + b"\x00" * MAX_EVENT_BYTES)


@pytest.mark.parametrize("frame", FRAMES)
def test_trailing_bytes_are_refused(frame: bytes) -> None:
    with pytest.raises(UndecodableError, match="1 trailing bytes"):
        decode(frame + b"\x00")


@pytest.mark.parametrize("frame", FRAMES)
def test_every_truncation_is_refused(frame: bytes) -> None:
    for size in range(len(frame)):
        with pytest.raises(UndecodableError):
            decode(frame[:size])


@pytest.mark.parametrize("frame", FRAMES)
def test_a_flipped_bit_raises_nothing_but_a_schema_error(frame: bytes) -> None:
    rng = random.Random(frame)
    for place in [*range(len(frame)), *range(HEADER_BYTES, len(frame))]:
        damaged = bytearray(frame)
        damaged[place] ^= 1 << rng.randrange(8)
        _decode_or_refuse(bytes(damaged))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FRAMES), st.binary(max_size=300))
def test_random_bodies_raise_nothing_but_a_schema_error(frame: bytes, body: bytes) -> None:
    _decode_or_refuse(frame[:HEADER_BYTES] + body)
    _decode_or_refuse(body)


@settings(max_examples=100, deadline=None)
@given(events(), st.integers(0, 400), st.binary(min_size=1, max_size=20))
def test_bytes_written_over_a_valid_frame_raise_nothing_but_a_schema_error(
    event: Any, place: int, patch: bytes
) -> None:
    frame = encode(event)
    _decode_or_refuse(frame[:place] + patch + frame[place + len(patch) :])


PREFIXES = {
    SelectionClosed: (0, 0),
    EpochOpened: (0, 0, b"{}", 4, b""),
    TrajectoryRecorded: (b"g", b"x", 0, 0, 0, b"t", 0),
}


@pytest.mark.parametrize("event_type", PREFIXES)
@pytest.mark.parametrize("count", [2**40, 2**62, -(2**40), -(2**63)])
def test_a_huge_count_allocates_nothing_before_its_items_are_there(event_type: Any, count: int) -> None:
    prefix = b"".join(_long(part) if isinstance(part, int) else _text(part) for part in PREFIXES[event_type])
    data = encode(sample(event_type, "bare"))[:HEADER_BYTES] + prefix + _long(count) + b"\x00" * 64
    _refused_within(data, 1024 * 1024)


@pytest.mark.parametrize("length", [2**40, 2**62, -5])
def test_a_huge_length_allocates_nothing_before_its_bytes_are_there(length: int) -> None:
    data = encode(sample(LearnerStarted, "bare"))[:HEADER_BYTES] + _long(1) + _long(length) + b"n"
    _refused_within(data, 1024 * 1024)


def test_a_number_without_an_end_is_refused() -> None:
    _refused_within(FRAMES[0][:HEADER_BYTES] + b"\xff" * 1_000_000, 8 * 1024 * 1024)


def _decode_or_refuse(data: bytes) -> None:
    try:
        event = decode(data)
    except SchemaError as error:
        assert "\n" not in str(error)
    else:
        assert kind_of_frame(data) == event.KIND


def _refused_within(data: bytes, limit: int) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UndecodableError):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def _long(value: int) -> bytes:
    value = (value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _text(value: bytes) -> bytes:
    return _long(len(value)) + value
