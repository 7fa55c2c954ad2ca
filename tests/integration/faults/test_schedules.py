"""Eight seeded schedules of faults on whole runs, and one of late results. One command runs as many as one likes."""

import logging
import os

import pytest

from tests.integration.faults.schedule import HELD_BACK, REPEAT, RERUN, SERVICES, Action, schedule
from tests.integration.faults.suite import Outcome, missed, run_suite
from tests.integration.faults.trial import TRIGGERS

SCHEDULES = range(8)
AT_A_TIME = 2


@pytest.mark.slow
@pytest.mark.parametrize("broker", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
async def test_whole_runs_under_faults_decide_as_if_nothing_had_happened(
    broker: str, caplog: pytest.LogCaptureFixture
) -> None:
    if broker == "kafka" and not os.environ.get("KAFKA_HOME"):
        pytest.skip("KAFKA_HOME names no Apache Kafka")
    caplog.set_level(logging.CRITICAL, "aiokafka")
    outcomes = [outcome async for outcome in run_suite(broker, SCHEDULES, AT_A_TIME)]
    assert not [str(outcome) for outcome in outcomes if outcome.error]
    assert [outcome.plan.seed for outcome in sorted(outcomes, key=_seed)] == [HELD_BACK.seed, *SCHEDULES]
    assert missed(outcomes) == set()


def _seed(outcome: Outcome) -> int:
    return outcome.plan.seed


def test_any_eight_schedules_in_a_row_hold_every_kind_of_fault() -> None:
    """`missed` says nothing of a kind that no schedule plans."""
    every = {f"{action} {service}" for action in (Action.KILL, Action.PAUSE) for service in SERVICES}
    every |= {str(Action.USURP), str(Action.BROKER), REPEAT, RERUN}
    events = dict.fromkeys(TRIGGERS, 10)
    for start in range(24):
        planned = [schedule(seed, events) for seed in range(start, start + 8)]
        assert set().union(*(plan.blows for plan in planned)) == every
