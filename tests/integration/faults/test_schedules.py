"""Eight seeded schedules of faults on whole runs; `python -m tests.integration.faults` runs as many as one likes."""

import logging
import os

import pytest

from tests.integration.faults.suite import run_suite

SCHEDULES = range(8)
AT_A_TIME = 4


@pytest.mark.slow
@pytest.mark.parametrize("broker", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
async def test_whole_runs_under_faults_decide_as_if_nothing_had_happened(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    if broker == "kafka" and not os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME names no Apache Kafka")
    caplog.set_level(logging.CRITICAL, "aiokafka")
    outcomes = [outcome async for outcome in run_suite(broker, SCHEDULES, AT_A_TIME)]
    assert len(outcomes) == len(SCHEDULES)
    assert not [str(outcome) for outcome in outcomes if outcome.error]
