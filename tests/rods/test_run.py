"""How a run ends."""

from rods import run
from rods.brokers import process as broker_process


def test_the_steps_of_an_ending_by_a_signal_leave_two_of_ten_seconds_for_the_report() -> None:
    assert run.STOP_SECONDS + run.FOLLOW_SECONDS + broker_process.STOP_SECONDS <= 8
