"""A Kafka broker of the run's own: found or refused in one sentence, and its log outlives it."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from eventlog.client import log_producer
from eventlog.reader import read_all
from rods.brokers.embedded import create_topics
from rods.brokers.kafka import KafkaBroker, broker_properties, find_kafka
from rods.brokers.process import kept_environment
from rods.errors import UserError
from rods.settings import PASSWORD_VARIABLE
from tests.log_writing import send_all

ROLLOUTS = ("t.rollouts", 1)


def java_saying(folder: Path, words: str) -> dict[str, str]:
    """An environment whose Java says so, with a Kafka home."""
    (folder / "libs").mkdir()
    (folder / "libs" / "kafka_2.13-4.3.1.jar").touch()
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    java.chmod(0o755)
    return {"KAFKA_HOME": str(folder), "PATH": str(folder)}


def test_without_a_kafka_home_one_sentence_names_it() -> None:
    with pytest.raises(UserError, match="set KAFKA_HOME"):
        find_kafka({"PATH": os.environ["PATH"]})


def test_a_home_without_kafka_in_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no Apache Kafka"):
        find_kafka({"KAFKA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


def test_without_java_one_sentence_says_so(tmp_path: Path) -> None:
    environment = java_saying(tmp_path, "")
    (tmp_path / "java").unlink()
    with pytest.raises(UserError, match="Java 17 or newer: there is no java"):
        find_kafka(environment)


@pytest.mark.parametrize(
    "words", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_292"', "Segmentation fault"]
)
def test_an_old_java_is_refused(tmp_path: Path, words: str) -> None:
    with pytest.raises(UserError, match="Java 17 or newer"):
        find_kafka(java_saying(tmp_path, words))


def test_a_newer_java_is_taken(tmp_path: Path) -> None:
    found = find_kafka(java_saying(tmp_path, 'openjdk version "21" 2023-09-19'))
    assert found.java == str(tmp_path / "java")
    assert found.libs == tmp_path / "libs"


def test_every_name_in_the_properties_is_filled_in_and_all_listeners_are_on_loopback(tmp_path: Path) -> None:
    lines = broker_properties(tmp_path, 1111, 2222).splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert "$" not in "".join(given.values())
    assert given["log.dirs"] == str(tmp_path)
    assert {url.split("//")[1].split(":")[0] for url in given["listeners"].split(",")} == {"127.0.0.1"}
    assert given["auto.create.topics.enable"] == "false"


def test_a_folder_that_kafka_would_read_as_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="comma"):
        broker_properties(tmp_path / "a,b", 1, 2)


def test_a_broker_gets_no_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    assert "secret" not in kept_environment().values()


@pytest.mark.kafka
async def test_the_log_survives_a_stop_and_a_kill_and_new_ports(tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []
    for ending in (signal.SIGTERM, signal.SIGKILL, None):
        with KafkaBroker(tmp_path, tmp_path / "log") as broker:
            await create_topics(broker.address, "t.", 2)
            async with log_producer(broker.address) as producer:
                await send_all(producer, *ROLLOUTS, [("k", b"v")] * 10)
            records = [record async for record in read_all(broker.address, *ROLLOUTS)]
            found.append((broker.cluster, len(records)))
            if ending and broker.pid:
                os.kill(broker.pid, ending)
                psutil.Process(broker.pid).wait()
    assert found == [(found[0][0], 10), (found[0][0], 20), (found[0][0], 30)]
    assert found[0][0]
