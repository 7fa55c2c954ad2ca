"""The benchmark of verdicts runs, and refuses to report a speed for verdicts that differ."""

from benchmarks.verdicts import measure


def test_a_short_pass_compares_equal_verdicts() -> None:
    found = measure(seed=2, count=60)
    assert found.cases == 60
    assert found.disagreements == ()
    assert found.ratio > 0
