from dataclasses import replace

from schemas.seals import PartitionSealed
from streams.seals.assembly import Assembly, assemble
from tests.streams.rollout_log import barrier, seal_of


def chunks(digest: str, number: int) -> list[PartitionSealed]:
    seal = replace(seal_of(barrier()), digest=digest)
    return [replace(seal, chunk=chunk, chunks=number) for chunk in range(number)]


def whole(*events: PartitionSealed) -> list[str]:
    assembly, found = Assembly(), []
    for event in events:
        assembly, seal = assemble(assembly, event)
        found += [seal.digest] if seal else []
    return found


def test_a_seal_is_whole_when_all_its_chunks_are_in_whatever_their_order() -> None:
    a, b, c = chunks("d", 3)
    assert whole(a, b) == []
    assert whole(c, a, b) == ["d"]
    assert whole(a, a, b, b, c) == ["d"]


def test_chunks_of_a_writer_that_died_complete_nothing_and_hinder_nobody() -> None:
    old, new = chunks("old", 2), chunks("new", 3)
    assert whole(old[0], *new) == ["new"]


def test_a_whole_seal_leaves_nothing_waiting() -> None:
    assembly = assemble(Assembly(), chunks("old", 2)[0]).assembly
    for event in chunks("new", 2):
        assembly = assemble(assembly, event).assembly
    assert assembly.chunks == {}


def test_an_impossible_chunk_completes_nothing() -> None:
    a, _ = chunks("d", 2)
    assert whole(replace(a, chunk=5), replace(a, chunk=-1)) == []


def test_a_seal_of_no_chunks_or_of_no_such_partition_is_passed_over() -> None:
    (a,) = chunks("d", 1)
    changes: list[dict[str, int]] = [{"chunks": 0}, {"chunks": -1}, {"partitions": 0}, {"partition": -1}]
    assert whole(*[replace(a, **change) for change in changes]) == []  # type: ignore[arg-type]
    assert whole(replace(a, partition=a.partitions)) == []
