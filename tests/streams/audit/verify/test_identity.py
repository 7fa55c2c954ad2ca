import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.catalogue import BY_KIND
from schemas.codec import decode, decode_plain, encode
from schemas.envelope import stamp
from schemas.identity import content_digest, variant_id
from schemas.pool import VariantVerified
from schemas.task import TaskDefinition, Turn
from schemas.topics import KINDS, Topic, partition_of
from streams.audit.verify.batch import Batch
from streams.audit.verify.identity import NATURAL_KEYS, Expected, check_identity, natural_keys
from streams.audit.verify.values import check_values
from tests.streams.rollout_log import barrier, result

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "events.json").read_text())


def _frames() -> list[bytes]:
    """A frame of each kind and version."""
    found: list[bytes] = []

    def search(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                search(inner)
        elif isinstance(value, list):
            for inner in value:
                search(inner)
        elif isinstance(value, str) and value.startswith("c301"):
            found.append(bytes.fromhex(value))

    search(GOLDEN)
    return found


def test_natural_keys_are_those_of_the_event_types() -> None:
    assert NATURAL_KEYS.keys() == BY_KIND.keys()
    frames = _frames()
    assert {decode_plain(frame).kind for frame in frames} == BY_KIND.keys()
    for frame in frames:
        kind, _, record = decode_plain(frame)
        assert list(natural_keys(kind, Batch([record]))) == [decode(frame).natural_key]


def _check(event: Any, topic: Topic = Topic.ROLLOUTS, key: bytes | None = b"t", **place: Any) -> str | None:
    expected = Expected(topic, **{"partition": 0, "run": "run", "partitions": 1, **place})
    return check_identity(expected, [key], *_plain(event))


def _plain(event: Any) -> tuple[str, Batch]:
    kind, _, record = decode_plain(encode(event))
    return kind, Batch([record])


def test_an_event_in_its_place_is_faultless() -> None:
    assert _check(result()) is None
    assert _check(barrier(), key=b"run") is None


def test_an_event_out_of_its_place_is_told_why() -> None:
    other = (partition_of("t", 4) + 1) % 4
    assert "does not travel" in (_check(result(), Topic.POOL) or "")
    assert "belongs to the run" in (_check(result(), run="another") or "")
    assert "key" in (_check(result(), key=b"u") or "")
    assert "key" in (_check(result(), key=None) or "")
    assert "belongs to partition" in (_check(result(), partition=other, partitions=4) or "")
    assert "another one" in (_check(barrier(partition=3, partitions=4), key=b"run", partitions=4) or "")


def test_a_natural_key_that_was_edited_no_longer_fits_the_id() -> None:
    assert "id" in (_check(replace(result(), group="g2")) or "")


def test_a_variant_is_what_its_digests_say() -> None:
    definition = TaskDefinition("", "workbench", "base", "s", ("Files",), "{}", (Turn(("a",), ("f()",)),), "t")
    content = content_digest(definition)
    named = replace(definition, task=variant_id("s1", content))
    event = stamp(VariantVerified("s1", 1, 1, 0, named, content), run_id="run", occurred_at=1, producer="synthesis")
    assert _check(event, Topic.POOL) is None
    edited = replace(event, definition=replace(named, initial_state='{"x":1}'))
    assert "content" in (_check(edited, Topic.POOL) or "")
    assert "does not follow" in (_check(replace(event, seed="s2"), Topic.POOL) or "")


@pytest.mark.parametrize("kind", sorted(BY_KIND))
def test_every_kind_has_a_topic_and_checks(kind: str) -> None:
    assert any(kind in kinds for kinds in KINDS.values())
    for frame in _frames():
        plain = decode_plain(frame)
        if plain.kind == kind:
            wrong = check_values(kind, Batch([plain.record]))
            assert wrong is None or isinstance(wrong, str)
