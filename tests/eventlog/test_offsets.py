from hypothesis import given
from hypothesis import strategies as st

from eventlog.offsets import PartitionProgress, TakenOffsets


@given(st.permutations(list(range(8))), st.integers(0, 8))
def test_a_commit_never_passes_work_that_is_not_done(order: list[int], count: int) -> None:
    progress = PartitionProgress()
    for offset in range(8):
        assert progress.take(offset)
    for offset in order[:count]:
        progress.done(offset)
    open_offsets = sorted(order[count:])
    assert progress.committable == (open_offsets[0] if open_offsets else 8)


def test_an_offset_is_taken_once() -> None:
    progress = PartitionProgress()
    assert progress.take(5)
    assert not progress.take(5)
    assert not progress.take(4)
    assert progress.committable == 5


def test_a_gap_means_that_another_member_did_what_lies_between() -> None:
    progress = PartitionProgress()
    progress.take(0)
    progress.take(7)
    assert not progress.is_open(0)
    assert progress.committable == 7


def test_a_lost_partition_is_forgotten_and_taken_anew() -> None:
    offsets = TakenOffsets()
    offsets.take(0, 3)
    offsets.take(1, 9)
    offsets.keep([1])
    offsets.done(0, 3)
    assert offsets.commits() == {1: 9}
    assert offsets.take(0, 3)


def test_an_offset_is_committed_once() -> None:
    offsets = TakenOffsets()
    offsets.take(0, 3)
    offsets.done(0, 3)
    assert offsets.commits() == {0: 4}
    offsets.committed({0: 4})
    assert offsets.commits() == {}
    offsets.take(0, 4)
    assert offsets.commits() == {}
    offsets.done(0, 4)
    assert offsets.commits() == {0: 5}
