from schemas.seals import BoundarySeedSelected
from streams.select.fold import PlacedSeed, SelectState
from streams.session import SelectPosition


def planted(task: str) -> tuple[PlacedSeed, ...]:
    return (PlacedSeed(0, BoundarySeedSelected(1, 1, task, task, "base", 1.0, 0.5, 0, 1, (), "{}", 0)),)


SEEDS = {3: planted("a"), 7: planted("b")}


def test_seeds_whose_selection_is_not_committed_wait_for_its_delivery() -> None:
    position = SelectPosition.after(SelectState(next_offset=9), SEEDS, committed=5)
    assert (position.recovered, position.seeds, position.latest) == (9, {7: SEEDS[7]}, ())


def test_the_newest_committed_seeds_are_written_again_and_older_ones_are_forgotten() -> None:
    position = SelectPosition.after(SelectState(next_offset=9), SEEDS, committed=8)
    assert (position.seeds, position.latest) == ({}, SEEDS[7])


def test_a_log_without_seeds_has_none_to_write() -> None:
    assert SelectPosition.after(SelectState(), {}, committed=0).latest == ()
