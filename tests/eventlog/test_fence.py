from eventlog.fence import superseded
from schemas.epochs import LearnerStarted
from schemas.pool import OperatorDecided, SeedSettled


def test_an_older_learner_is_superseded_and_the_newest_is_not() -> None:
    assert [superseded(LearnerStarted(generation, "n"), 2) for generation in (0, 1, 2, 3)] == [True, True, False, False]


def test_synthesis_and_operators_are_not_fenced() -> None:
    assert not superseded(SeedSettled(0, "s", 1, 1, "done", 1), 2)
    assert superseded(SeedSettled(1, "s", 1, 1, "expired", 0), 2)
    assert "generation" not in OperatorDecided.__dataclass_fields__
    assert not superseded(object(), 2)
