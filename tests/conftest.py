"""Tests marked `kafka` need an Apache Kafka to start; where KAFKA_HOME names none, they are skipped."""

import os

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kafka") and not os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME is not set")
