import hashlib

from schemas.codec import decode, encode
from streams.dead_letters import refusal, refused_bytes, refused_event
from tests.streams.rollout_log import result


def test_a_dead_letter_keeps_64_kib_and_the_digest_of_all() -> None:
    value = b"x" * 70_000
    letter = refusal("rods.rollouts", 1, 2, value, "r" * 1000)
    assert len(letter.value) == 65_536 and letter.sha256 == hashlib.sha256(value).hexdigest()
    assert len(letter.reason) == 500


def test_refusing_again_gives_the_same_bytes() -> None:
    letter = refusal("rods.rollouts", 1, 2, b"x", "why")
    assert encode(refused_bytes(letter, 12.345)) == encode(refused_bytes(letter, 12.345))
    again = refused_event(letter, result().envelope)
    assert encode(again) == encode(refused_event(letter, result().envelope)) and decode(encode(again)) == again
    assert refused_bytes(letter, 12.345).envelope.occurred_at == 12_345_000
