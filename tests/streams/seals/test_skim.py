"""Skimming any beginning of the log and folding the rest gives what folding it all gives."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streams.seals.skim
from schemas.codec import AVRO_FOLDER, encode
from schemas.errors import UndecodableError
from schemas.seals import PartitionSealed, SelectionClosed
from streams.seals.reader import SealLog
from streams.seals.skim import RECENT, SealHead, Skim, seal_head
from streams.select.fold import SelectState, evolve
from tests.streams.select.test_fold import log, partition_seals

SEALS = [seal for pair in zip(partition_seals(0, 2, 5), partition_seals(1, 2, 5), strict=True) for seal in pair]


def skimmed(frames: list[bytes], cut: int) -> SealLog:
    skim, found = Skim(next_offset=cut), SealLog({})
    for offset, frame in enumerate(frames[:cut]):
        skim.take(offset, frame)
    found.resume(skim)
    for offset, frame in enumerate(frames[cut:], cut):
        found.take(offset, frame)
    return found


def folded(frames: list[bytes]) -> SealLog:
    return skimmed(frames, 0)


def decisive(found: SealLog) -> SelectState:
    return replace(found.select, duplicate=0, alarms=0)


def agree(frames: list[bytes], cut: int, recent: int = RECENT) -> None:
    whole, part = folded(frames), skimmed(frames, cut)
    assert decisive(part) == decisive(whole)
    assert part.seeds.items() <= whole.seeds.items()
    assert {offset for offset in whole.seeds if offset >= cut} <= set(part.seeds)
    assert set(sorted(whole.seeds)[-recent:]) <= set(part.seeds)


@pytest.mark.parametrize("recent", [1, 2, RECENT])
@pytest.mark.parametrize("cut", range(len(log(SEALS)) + 1))
def test_a_skim_may_end_anywhere(cut: int, recent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams.seals.skim, "RECENT", recent)
    agree([encode(event) for event in log(SEALS)], cut, recent)


@given(st.data())
def test_duplicates_garbage_and_selections_without_seals_mislead_no_skim(data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(SEALS))))
    topic: list[Any] = list(log([SEALS[index] for index in order]))
    for _ in range(data.draw(st.integers(0, 6))):
        place = data.draw(st.integers(0, len(topic)))
        again: Any = data.draw(st.sampled_from(topic))
        topic.insert(place, data.draw(st.sampled_from([again, b"garbage"])))
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(topic.index(SEALS[0]) + 1, len(topic)))
        topic.insert(place, encode_cut(SEALS[0]))
    frames = [event if isinstance(event, bytes) else encode(event) for event in topic]
    agree(frames, data.draw(st.integers(0, len(frames))))


def encode_cut(event: PartitionSealed) -> bytes:
    return encode(event)[:-3]


def test_a_seal_in_chunks_is_whole_with_its_last_one() -> None:
    seal = SEALS[0]
    halves = [replace(seal, chunk=number, chunks=2) for number in (0, 1)]
    closed = evolve(evolve(SelectState(), 0, replace(seal, partitions=1)).state, 1, SEALS[1]).state.proposed
    assert isinstance(closed, SelectionClosed)
    skim = Skim()
    events: list[Any] = [replace(halves[0], partitions=1), closed, replace(halves[1], partitions=1)]
    for offset, event in enumerate(events):
        skim.take(offset, encode(event))
    assert skim.closed == 0
    skim.take(3, encode(closed))
    assert skim.closed == 1 and len(list(skim.frames())) == 3


def test_every_version_of_a_seal_begins_with_its_head() -> None:
    for path in AVRO_FOLDER.glob("PartitionSealed.v*.avsc"):
        names = [field["name"] for field in json.loads(path.read_text())["fields"]]
        assert set(SealHead._fields) <= set(names[: names.index("groups")])


def test_a_head_is_read_without_the_rest() -> None:
    seal = replace(SEALS[3], step=123456789, chunk=3, chunks=70)
    assert seal_head(encode(seal)) == (seal.epoch, 123456789, seal.partition, seal.partitions, 3, 70, seal.digest)
    with pytest.raises(UndecodableError):
        seal_head(encode(seal)[:12])
    with pytest.raises(UndecodableError):
        seal_head(encode(seal)[:10] + b"\xff" * 40)
