from schemas.seals import BoundarySeedSelected
from streams.seals.skim import RECENT
from streams.select.fold import PlacedSeed, SelectState
from streams.service.session import SelectPosition


def planted(task: str) -> tuple[PlacedSeed, ...]:
    return (PlacedSeed(0, BoundarySeedSelected(1, 1, task, task, "base", 1.0, 0.5, 0, 1, (), "{}", 0)),)


SEEDS = {3: planted("a"), 7: planted("b")}


def test_seeds_whose_selection_is_not_committed_wait_for_its_delivery() -> None:
    position = SelectPosition.after(SelectState(next_offset=9), SEEDS, committed=5)
    assert (position.recovered, position.seeds) == (9, {7: SEEDS[7]})


def test_the_latest_committed_seeds_are_written_again_and_older_ones_are_forgotten() -> None:
    seeds = {offset: planted(f"t{offset}") for offset in range(0, 3 * (RECENT + 2), 3)}
    committed = max(seeds)
    position = SelectPosition.after(SelectState(next_offset=99), seeds, committed)
    assert position.seeds == {committed: seeds[committed]}
    recent = sorted(seeds)[-RECENT - 1 : -1]
    assert position.latest == tuple(seed for offset in recent for seed in seeds[offset])


def test_a_log_without_seeds_has_none_to_write() -> None:
    assert SelectPosition.after(SelectState(), {}, committed=0).latest == ()
