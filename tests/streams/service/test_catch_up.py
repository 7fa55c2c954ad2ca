import pytest

from streams.errors import LogBehindError
from streams.service.catch_up import Standing, missing


def test_a_commit_behind_the_seals_leaves_nothing_to_read() -> None:
    assert not missing("rods.rollouts", 0, 10, Standing(committed=4, end=20))


def test_what_lies_between_the_seals_and_the_commit_is_read_from_the_log() -> None:
    assert missing("rods.rollouts", 0, 4, Standing(committed=10, end=20)) == range(4, 10)


def test_a_commit_behind_the_end_of_the_log_is_no_reason_to_wait_for_what_is_not_there() -> None:
    assert missing("rods.rollouts", 0, 4, Standing(committed=1000, end=6)) == range(4, 6)


def test_seals_that_are_ahead_of_the_log_are_refused() -> None:
    with pytest.raises(LogBehindError, match=r"rods\.rollouts/0 ends at offset 6 .* restored from the archive"):
        missing("rods.rollouts", 0, 7, Standing(committed=6, end=6))
