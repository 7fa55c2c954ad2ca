from dataclasses import replace

import pytest

from schemas.codec import encode
from schemas.rules import Rules
from schemas.seals import PartitionSealed, SealedGroup, TaskState, WindowGroup
from streams.errors import UnassembledSealError
from streams.measure.seal import MAX_CHUNK_BYTES, join_chunks, seal_digest, sealed
from tests.streams.rollout_log import barrier, expected, result, seal_of


def large_seal(groups: int, states: int) -> PartitionSealed:
    def task(index: int) -> TaskState:
        return TaskState(f"täsk-{index:06}" * 4, "base", (WindowGroup("g" * 32, 16, 9, 9, 5),) * 4, 1, 2, 3)

    def group(index: int) -> SealedGroup:
        return SealedGroup(
            group=f"{index:032}",
            task=task(index).task,
            purpose="train",
            category="base",
            execution="e" * 32,
            turns_total=5,
            passed=(3,) * 16,
            reasons=("",) * 16,
            policy_versions=(7,) * 16,
            trajectories=("f" * 64,) * 16,
            zone="boundary",
            boundary=True,
            state=task(index),
        )

    base = seal_of(barrier())
    return replace(base, groups=tuple(map(group, range(groups))), state=tuple(map(task, range(states))))


def test_the_digest_covers_no_offset_id_clock_generation_version_or_count() -> None:
    one = seal_of(result(), barrier(expected()))
    other = seal_of(
        result("noise"),
        result(execution="e9", run="other run"),
        result(),
        barrier(expected(), generation=5, pool_offset=99, run="other run"),
    )
    assert other.digest == one.digest and other.barrier_offset != one.barrier_offset
    assert other.envelope.event_id != one.envelope.event_id


@pytest.mark.parametrize(
    "other",
    [
        seal_of(result(passed=(0, 1, 2, 2)), barrier(expected())),
        seal_of(result(passed=(0, 1, 2, None)), barrier(expected())),
        seal_of(result(), barrier(expected(), last=True)),
        seal_of(result(), barrier(expected(), rules=Rules(seed=2))),
        seal_of(result(), barrier(expected(), epoch=2)),
        seal_of(result(), barrier(expected(), partitions=2)),
    ],
)
def test_the_digest_covers_what_was_decided(other: PartitionSealed) -> None:
    assert other.digest != seal_of(result(), barrier(expected())).digest


def test_anyone_can_recompute_a_digest() -> None:
    seal = seal_of(result(), barrier(expected(), last=True))
    assert seal_digest(seal) == seal.digest


def test_a_large_seal_comes_in_chunks_below_4_mib_that_join_again() -> None:
    seal = large_seal(3000, 20_000)
    chunks = sealed(seal)
    sizes = [len(encode(chunk)) for chunk in chunks]
    assert len(chunks) > 2 and max(sizes) < MAX_CHUNK_BYTES and min(sizes[:-1]) > MAX_CHUNK_BYTES // 4
    whole = join_chunks(reversed(chunks))
    assert (whole.groups, whole.state) == (seal.groups, seal.state)
    assert seal_digest(whole) == chunks[0].digest == chunks[-1].digest


def test_an_empty_seal_is_one_chunk() -> None:
    (chunk,) = sealed(seal_of(barrier()))
    assert (chunk.chunk, chunk.chunks, chunk.groups) == (0, 1, ())


def test_chunks_that_are_incomplete_or_of_two_seals_do_not_join() -> None:
    chunks = sealed(large_seal(3000, 0))
    with pytest.raises(UnassembledSealError):
        join_chunks(chunks[1:])
    with pytest.raises(UnassembledSealError):
        join_chunks([])
    with pytest.raises(UnassembledSealError):
        join_chunks([replace(chunks[0], digest="other"), *chunks[1:]])
