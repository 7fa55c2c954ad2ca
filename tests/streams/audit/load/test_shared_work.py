from functools import partial
from pathlib import Path

import pytest

from streams.audit.load.shared_work import shared


def doubled(number: int) -> int:
    if number < 0:
        raise ValueError("a negative number")
    return 2 * number


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_results_come_in_the_order_of_the_jobs_whoever_did_them(processes: int) -> None:
    with shared([partial(doubled, number) for number in range(7)], processes) as work:
        assert work.results() == [0, 2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_a_job_raises_is_raised(processes: int) -> None:
    with pytest.raises(ValueError, match="a negative number"), shared([partial(doubled, -1)], processes) as work:
        work.results()


def noted(folder: Path, number: int) -> None:
    (folder / str(number)).touch()


def test_work_that_nobody_waits_for_any_more_is_not_begun(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyError), shared([partial(noted, tmp_path, number) for number in range(100)], 2):
        raise KeyError
    assert len(list(tmp_path.iterdir())) <= 1
    assert not caplog.records, "and nobody tries to"


def test_no_jobs_are_no_results() -> None:
    with shared(list[partial[int]](), 2) as work:
        assert work.results() == []
