"""Tests marked `kafka` need an Apache Kafka to start; where KAFKA_HOME names none, they are skipped. Properties have no
time limit: how long an example takes is the machine's affair."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from rods.brokers.embedded import EmbeddedBroker
from rods.brokers.kafka import KafkaBroker

settings.register_profile("rods", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rods")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kafka") and not os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME is not set")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an embedded broker that a module's tests share."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker") / "log") as embedded:
        yield embedded.address


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Apache Kafka that tests share; each has a prefix of its own."""
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(folder, folder / "log") as started:
        yield started.address


@pytest.fixture(scope="module", params=["broker", pytest.param("kafka", marks=pytest.mark.kafka)])
def any_broker(request: pytest.FixtureRequest) -> str:
    """The address of a broker of each kind."""
    return str(request.getfixturevalue(request.param))
