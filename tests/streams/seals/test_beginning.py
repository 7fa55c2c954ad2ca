from collections.abc import Iterable
from dataclasses import replace

import pytest

from schemas.codec import encode
from schemas.seals import SelectionClosed
from streams.seals.beginning import Beginning
from tests.streams.rollout_log import barrier, seal_of

PARTITIONS = 2


def seal(step: int, partition: int, chunk: int = 0) -> bytes:
    return encode(replace(seal_of(barrier()), step=step, partition=partition, partitions=PARTITIONS, chunk=chunk))


def selected(step: int) -> bytes:
    return encode(SelectionClosed(1, step, (), 0, 0, "digest"))


def whole(frames: Iterable[bytes]) -> bool:
    beginning = Beginning(PARTITIONS)
    return all(beginning.take(frame) for frame in frames)


def test_what_was_sealed_anew_is_whole() -> None:
    assert whole([seal(1, 0), seal(1, 0, chunk=1), seal(2, 0), seal(1, 1), selected(1), seal(2, 1), selected(2)])


def test_a_partition_that_is_not_sealed_yet_is_no_loss() -> None:
    assert whole([seal(1, 1), seal(2, 1)]) and whole([])


def test_what_tells_nothing_of_the_beginning_is_passed_over() -> None:
    assert whole([b"garbage", seal(1, 0)[:11], seal(1, 0), seal(1, 1), selected(1)])


@pytest.mark.parametrize(
    "frames",
    [
        [seal(2, 0), seal(1, 1)],
        [seal(1, 0, chunk=1), seal(1, 1)],
        [seal(1, 1), selected(1), seal(2, 0)],
        [selected(4)],
    ],
    ids=["a later step", "a later chunk", "a selection without a seal", "a selection alone"],
)
def test_a_lost_beginning_shows(frames: list[bytes]) -> None:
    assert not whole(frames)
