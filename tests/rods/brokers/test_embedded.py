import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from eventlog.connection import Connection
from rods.brokers.connection import parse_address, try_connection
from rods.brokers.embedded import EmbeddedBroker, create_topics
from rods.brokers.process import speaks_kafka
from rods.brokers.topics_file import TOPICS_FILE, load_topics
from rods.errors import UserError
from schemas.topics import Topic
from tests.rods.processes import alive


def test_the_broker_answers_inside_the_context_and_is_gone_after_it(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker.log") as broker:
        try_connection(Connection(broker.address), 1)
        pid = broker.pid
        assert pid is not None
        assert alive(pid)
    assert not broker.alive
    assert not alive(pid)
    assert "listening" in (tmp_path / "broker.log").read_text()


def test_a_broker_interrupted_while_it_starts_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("rods.brokers.process.speaks_kafka", interrupted)
    broker = EmbeddedBroker(tmp_path / "broker.log")
    with pytest.raises(KeyboardInterrupt), broker:
        pass
    assert broker.pid is not None
    assert not broker.alive


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} .* in use"), EmbeddedBroker(tmp_path / "broker.log", port):
            pass


def test_a_listener_that_is_no_broker_is_not_taken_for_one() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert not speaks_kafka("127.0.0.1", silent.getsockname()[1], timeout=0.2)
    with pytest.raises(UserError, match="no Kafka broker answers"):
        try_connection(Connection("127.0.0.1:1"), 0.0)


@pytest.mark.parametrize("address", ["", "here", ":9092", "host:", "host:port", "host:0", "host:70000"])
def test_an_address_that_is_not_host_and_port_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="HOST:PORT"):
        parse_address(address)


@pytest.mark.parametrize(
    "made",
    ["embedded.EmbeddedBroker(log)", pytest.param("kafka.KafkaBroker(log.parent, log)", marks=pytest.mark.kafka)],
)
def test_a_broker_dies_with_a_killed_parent(tmp_path: Path, made: str) -> None:
    script = (
        "import sys, time; from pathlib import Path; from rods.brokers import embedded, kafka\n"
        f"log = Path(sys.argv[1]); broker = {made}.__enter__(); print(broker.pid, flush=True); time.sleep(600)"
    )
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=environment) as parent:
        assert parent.stdout is not None
        broker = int(parent.stdout.readline())
        assert alive(broker)
        parent.kill()
    while alive(broker):
        time.sleep(0.02)


async def test_topics_are_made_once_with_n_partitions_by_task_and_one_otherwise(any_broker: str) -> None:
    await create_topics(any_broker, "t.", 3)
    await create_topics(any_broker, "t.", 3)
    admin = AIOKafkaAdminClient(bootstrap_servers=any_broker)
    await admin.start()
    try:
        described = await admin.describe_topics([topic.named("t.") for topic in Topic])
    finally:
        await admin.close()
    counts = {topic["topic"]: len(topic["partitions"]) for topic in described}
    assert counts == {topic.named("t."): 3 if topic.by_task else 1 for topic in Topic}
    with pytest.raises(UserError, match="has 3 partitions where 4"):
        await create_topics(any_broker, "t.", 4)


def test_the_topics_file_keeps_every_log_for_ever_but_trajectories() -> None:
    specs = load_topics("rods.", 8)
    assert {spec.topic for spec in specs} == set(Topic)
    assert all(spec.config["cleanup.policy"] == "delete" for spec in specs)
    kept = {spec.topic: spec.config["retention.ms"] for spec in specs}
    assert kept.pop(Topic.TRAJECTORIES) == "604800000"
    assert set(kept.values()) == {"-1"}


@pytest.mark.parametrize(("brokers", "replication", "insync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (9, 3, "2")])
def test_replication_comes_down_to_the_brokers_there_are(brokers: int, replication: int, insync: str) -> None:
    spec = load_topics("rods.", 8)[0].on(brokers)
    assert (spec.replication, spec.config["min.insync.replicas"]) == (replication, insync)


def test_a_topics_file_that_misses_a_topic_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics.toml"
    path.write_text(TOPICS_FILE.read_text().replace("[topics.seeds]", ""))
    with pytest.raises(UserError, match="seeds"):
        load_topics("rods.", 8, path)
