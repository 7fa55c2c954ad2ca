import tomllib
from pathlib import Path

import pytest
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from schemas.catalogue import BY_KIND
from schemas.codec import MAX_EVENT_BYTES
from schemas.topics import DEFAULT_PREFIX, KINDS, Topic, murmur2, partition_of

TOPICS_FILE = Path(__file__).parents[2] / "infra" / "kafka" / "topics.toml"
FENCED = {Topic.EPOCHS, Topic.ASSIGNMENTS, Topic.ROLLOUTS, Topic.POOL}


@given(st.binary(max_size=64))
def test_murmur2_is_the_partitioner_of_the_client_library(data: bytes) -> None:
    assert murmur2(data) == aiokafka_murmur2(data) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_known_values_of_kafkas_own_tests(key: bytes, value: int) -> None:
    assert murmur2(key) == value & 0xFFFFFFFF


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 64))
def test_a_key_lands_where_the_client_would_send_it(key: str, partitions: int) -> None:
    assert partition_of(key, partitions) == DefaultPartitioner()(key.encode(), list(range(partitions)), [])


def test_every_kind_travels_on_a_topic_and_every_topic_is_listed() -> None:
    assert set(KINDS) == set(Topic)
    assert frozenset().union(*KINDS.values()) == set(BY_KIND)


def test_every_kind_but_the_fence_has_one_topic() -> None:
    homes = {kind: {topic for topic in Topic if kind in KINDS[topic]} for kind in BY_KIND}
    assert homes.pop("LearnerStarted") == FENCED
    assert all(len(topics) == 1 for topics in homes.values())


def test_the_topics_file_names_the_topics_and_keeps_them_for_good() -> None:
    document = tomllib.loads(TOPICS_FILE.read_text())
    assert set(document["topics"]) == {topic.value for topic in Topic}
    assert document["defaults"]["config"]["retention.ms"] == "-1"
    assert document["defaults"]["config"]["cleanup.policy"] == "delete"


@pytest.mark.parametrize("topic", [Topic.POOL, Topic.TRAJECTORIES, Topic.SEALS])
def test_heavy_topics_take_the_largest_event(topic: Topic) -> None:
    config = tomllib.loads(TOPICS_FILE.read_text())["topics"][topic.value]["config"]
    assert int(config["max.message.bytes"]) > MAX_EVENT_BYTES


def test_a_topic_is_named_by_its_prefix() -> None:
    assert Topic.DEAD_LETTERS.named(DEFAULT_PREFIX) == "rods.dead-letters"
    assert {topic for topic in Topic if not topic.by_task} == {
        Topic.EPOCHS,
        Topic.SEALS,
        Topic.POOL,
        Topic.DEAD_LETTERS,
    }
