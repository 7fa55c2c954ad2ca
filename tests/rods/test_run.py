"""How a run ends."""

from rods import broker, kafka_broker, run


def test_the_steps_of_an_ending_by_a_signal_leave_two_of_ten_seconds_for_the_report() -> None:
    stopping_a_broker = max(broker.STOP_SECONDS, kafka_broker.STOP_SECONDS)
    assert run.STOP_SECONDS + run.FOLLOW_SECONDS + stopping_a_broker <= 8
