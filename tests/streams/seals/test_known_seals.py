import pytest

from schemas.codec import decode, encode
from streams.seals import known_seals
from streams.seals.known_seals import KnownSeals
from tests.streams.rollout_log import barrier, expected, result, seal_of

SEAL = seal_of(result(), barrier(expected()))
FRAME = encode(SEAL)


def test_a_seal_is_recalled_once_and_equals_what_its_bytes_say() -> None:
    known = KnownSeals()
    known.remember(FRAME, SEAL)
    assert known.recall(bytes(FRAME)) == decode(FRAME)
    assert known.recall(FRAME) is None


def test_other_bytes_recall_nothing() -> None:
    known = KnownSeals()
    known.remember(FRAME, SEAL)
    assert known.recall(FRAME[:-1]) is None and known.recall(b"") is None


def test_what_nobody_reads_is_forgotten_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_seals, "MAX_BYTES", 10)
    known = KnownSeals()
    for frame in (b"1234", b"5678", b"90ab", b"5678"):
        known.remember(frame, SEAL)
    assert [known.recall(frame) is None for frame in (b"1234", b"5678", b"90ab")] == [True, False, False]
    known.remember(b"x" * 11, SEAL)
    assert known.recall(b"x" * 11) is None
