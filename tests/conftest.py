"""Tests marked `kafka` need an Apache Kafka to start; where KAFKA_HOME names none, they are skipped. Properties have no
time limit: how long an example takes is the machine's affair."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("rods", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rods")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kafka") and not os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME is not set")
