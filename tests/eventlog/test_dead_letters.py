import hashlib
from dataclasses import replace
from typing import Any

from eventlog.dead_letters import refusal, refused_bytes, refused_event
from rods.brokers.topics_file import load_topics
from schemas.codec import decode, encode
from schemas.topics import Topic
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


def test_the_letter_of_the_largest_record_fits_though_its_envelope_does_not() -> None:
    """A letter that the broker refuses would end the worker, and each one after it."""
    largest = {spec.topic: int(spec.config["max.message.bytes"]) for spec in load_topics("rods.", 1)}
    for text in ("run_id", "event_id", "correlation_id"):
        texts: dict[str, Any] = {text: "x" * (largest[Topic.ROLLOUTS] - 1024)}
        hostile = replace(result().envelope, **texts)
        event = replace(result(), envelope=hostile)
        letter = refused_event(refusal("rods.rollouts", 0, 0, encode(event), "wrong K"), hostile)
        assert len(encode(letter)) < largest[Topic.DEAD_LETTERS] - 1024
        assert len(encode(event)) < largest[Topic.ROLLOUTS] < len(encode(replace(letter, envelope=hostile)))
