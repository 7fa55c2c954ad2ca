"""What is folded and read in bytes is what the fold and the decoder of the streams come to."""

import hashlib
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from schemas.codec import decode, encode
from schemas.envelope import Producer, stamp
from schemas.epochs import LearnerStarted
from schemas.errors import UndecodableError
from schemas.rollouts import BarrierReached, ExpectedGroup, FailureReason, Purpose, RolloutFinished, Slot, TaskMeasured
from schemas.rules import MeasureRules, PoolRules, Rules
from schemas.seals import PartitionSealed
from streams.audit.quick_fold import Chunk, QuickFold
from streams.audit.quick_result import quick_result
from streams.audit.quick_seal import SealReader
from streams.audit.quick_view import ViewWriter, view_header
from streams.measure.fold import evolve, skip
from streams.measure.state import MeasureState

TASKS = ("plain", "task-é", 'quoted "task"', "back\\slash", "x" * 200, "", *(f"task-{n:03d}" for n in range(30)))
PURPOSES = [purpose.value for purpose in Purpose]


def random_slot(chance: Random, total: int, failing: float) -> Slot:
    digest = chance.choice(("", "ab" * 32))
    counts = (chance.randrange(200), chance.randrange(9000), chance.randrange(10**7), chance.choice((0, 3, 70, 9000)))
    if chance.random() < failing:
        reason = chance.choice([*(reason.value for reason in FailureReason), "its own", "é" * 80])
        return Slot("failed", chance.randrange(total + 1), total, (), *counts, digest, reason)
    passed = chance.randrange(total + 1)
    ended = passed < total and chance.random() < 0.9
    slot = Slot(
        "finished", passed, total, (True,) * passed + (False,) * ended, *counts, digest, chance.choice((None, ""))
    )
    if chance.random() < failing / 4:
        wrong: list[dict[str, Any]] = [
            {"outcomes": (False,) * total},
            {"turns_passed": total + 1},
            {"tokens": -1},
            {"policy_version": -5},
            {"trajectory": "z" * 70},
            {"turns_total": total + 1},
        ]
        slot = replace(slot, **chance.choice(wrong))
    return slot


class RandomLog:
    """A partition as hostile as it may come, step by step."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.failing = self.chance.choice((0.0, 0.0, 0.1, 0.6))
        self.slots: tuple[int, ...] = (1, 2, 16, 70)
        self.turns: tuple[int, ...] = (1, 3, 3, 3, 12, 20)
        self.categories = ("base", "b\tc")
        self.step = self.number = 0
        self.frames: list[bytes] = []

    def put(self, event: Any, repeat: float = 0.03) -> None:
        self.number += 1
        frame = encode(stamp(event, run_id="run", occurred_at=self.number, producer=Producer.LEARNER))
        self.frames.append(frame)
        if self.chance.random() < repeat:
            self.frames.append(frame)
        if self.chance.random() < 0.01:
            self.frames.append(self.chance.choice((frame[:-1], b"poison", frame + b"\0")))

    def made(self, steps: int = 6) -> list[bytes]:
        self.put(LearnerStarted(2, "revision"))
        for _ in range(steps):
            self.add_step()
        return self.frames

    def add_step(self) -> None:
        chance, self.step = self.chance, self.step + 1
        epoch = (self.step + 2) // 3
        pool = PoolRules(drift_low=chance.choice(("0.2", "0.5")))
        rules = Rules(measure=MeasureRules(window=chance.randint(1, 3)), pool=pool)
        expected = []
        for task in chance.sample(TASKS, chance.randint(0, len(TASKS))):
            k, total = chance.choice(self.slots), chance.choice(self.turns)
            purpose = chance.choice(PURPOSES[:2])
            group = ExpectedGroup(f"g-{self.step}-{task}", task, purpose, k, total, chance.choice(self.categories))
            expected.append(group)
            self.add_results(group, epoch)
        barrier = BarrierReached(
            2, epoch, self.step, 1, 2, tuple(expected), rules.canonical(), self.step % 3 == 0, self.number
        )
        if chance.random() < 0.2:
            wrong: list[dict[str, Any]] = [{"rules": "{}x"}, {"generation": 1}, {"partition": 0}, {"step": 99}]
            self.put(replace(barrier, **chance.choice(wrong)))
        self.put(barrier, repeat=0.2)

    def add_results(self, group: ExpectedGroup, epoch: int) -> None:
        chance = self.chance
        if chance.random() < self.failing / 2:
            return
        slots = tuple([random_slot(chance, group.turns_total, self.failing) for _ in range(group.k)])
        result = RolloutFinished(
            group.group,
            chance.choice(("", "0123abcd")),
            epoch,
            self.step,
            group.task,
            group.purpose,
            group.category,
            group.k,
            group.turns_total,
            slots,
        )
        if chance.random() < 0.1:
            others: list[dict[str, Any]] = [
                {"purpose": "evaluate"},
                {"purpose": "none"},
                {"step": self.step - 1},
                {"step": self.step + 1},
                {"category": "another"},
                {"k": group.k + 1},
                {"group": "unexpected"},
            ]
            self.put(replace(result, **chance.choice(others)))
        self.put(result)


def folded(frames: list[bytes], views: list[TaskMeasured] | None = None) -> tuple[list[PartitionSealed], MeasureState]:
    state, seals = MeasureState(1), list[PartitionSealed]()
    for offset, frame in enumerate(frames):
        try:
            evolved = evolve(state, offset, decode(frame))
        except UndecodableError:
            state = skip(state, offset)
            continue
        state = evolved.state
        seals += evolved.seals
        if views is not None and evolved.measured is not None:
            views.append(evolved.measured)
    return seals, state


def quickly_folded(
    frames: list[bytes], like: bytes, views: ViewWriter | None = None
) -> tuple[list[Chunk], QuickFold, int]:
    fold, chunks, quick = QuickFold(1, like, views), list[Chunk](), 0
    for offset, frame in enumerate(frames):
        result = quick_result(frame)
        if result is not None:
            fold.result(offset, result)
            quick += 1
            continue
        try:
            chunks += fold.event(offset, decode(frame))
        except UndecodableError:
            fold.skip(offset)
    return chunks, fold, quick


def printed(seal: PartitionSealed) -> Chunk:
    frame = hashlib.sha256(encode(seal)).digest()
    return Chunk(seal.epoch, seal.step, seal.chunk, seal.barrier_offset, frame)


@pytest.mark.parametrize("seed", range(8))
def test_a_partition_folded_in_bytes_comes_to_the_same_seals_and_views(seed: int) -> None:
    log = RandomLog(seed)
    frames = log.made()
    views, viewed = list[TaskMeasured](), list[bytes]()
    seals, state = folded(frames, views)
    chunks, fold, quick = quickly_folded(frames, encode(seals[0])[:10], ViewWriter(view_header(), viewed.append))
    assert chunks == [printed(seal) for seal in seals]
    assert viewed == [encode(view) for view in views]
    assert len(views) > len(seals)
    assert len(seals) >= 6
    assert quick or log.failing
    assert (fold.next_offset, fold.state.step, fold.state.counts) == (len(frames), state.step, state.counts)


def test_a_seal_of_many_chunks_folded_in_bytes_is_divided_in_the_same_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.measure.seal.MAX_CHUNK_BYTES", 32 * 1024)
    frames = RandomLog(1).made(12)
    seals, _ = folded(frames)
    assert max(seal.chunks for seal in seals) > 2
    chunks, _, _ = quickly_folded(frames, encode(seals[0])[:10])
    assert chunks == [printed(seal) for seal in seals]
    reader = SealReader()
    assert [reader.read(encode(seal)) or seal for seal in seals] == seals


@pytest.mark.parametrize("seed", range(8))
def test_a_seal_read_in_bytes_is_the_decoded_one(seed: int) -> None:
    seals, _ = folded(RandomLog(seed).made())
    reader = SealReader()
    read = [reader.read(encode(seal)) for seal in seals]
    assert [one or seal for one, seal in zip(read, seals, strict=True)] == seals


def test_every_seal_of_plain_names_is_read_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.streams.audit.test_quick.TASKS", tuple(f"task-{n}" for n in range(40)))
    log = RandomLog(4)
    log.slots, log.turns, log.categories = (1, 16), (3, 4), ("base", "miss_func")
    seals, _ = folded(log.made())
    reader = SealReader()
    assert [reader.read(encode(seal)) for seal in seals] == seals


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_were_changed_are_read_as_the_decoder_reads_them(seed: int) -> None:
    chance = Random(seed)
    seals, _ = folded(RandomLog(seed).made())
    for seal in seals:
        frame = bytearray(encode(seal))
        for _ in range(15):
            place, bit = chance.randrange(len(frame)), 1 << chance.randrange(8)
            frame[place] ^= bit
            read = SealReader().read(bytes(frame))
            assert read is None or read == decode(bytes(frame))
            frame[place] ^= bit


@pytest.mark.parametrize("seed", range(3))
def test_a_result_that_was_changed_and_is_still_taken_decodes_to_what_was_taken(seed: int) -> None:
    chance = Random(seed)
    taken = 0
    for frame in RandomLog(seed).made(3):
        for _ in range(4):
            changed = bytearray(frame)
            changed[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            if quick_result(bytes(changed)) is not None:
                start = [encode(stamp(LearnerStarted(2, "r"), run_id="run", occurred_at=0, producer="learner"))]
                assert settled([*start, bytes(changed)]) == settled([*start, bytes(changed)], quickly=False)
                taken += 1
    assert taken


def settled(frames: list[bytes], *, quickly: bool = True) -> Any:
    """The seals of a barrier that expects just the one result of these frames."""
    event = decode(frames[-1])
    group = ExpectedGroup(event.group, event.task, event.purpose, event.k, event.turns_total, event.category)
    barrier = BarrierReached(2, 1, 1, 1, 2, (group,), Rules().canonical(), True, 0)
    frames = [*frames, encode(stamp(barrier, run_id="run", occurred_at=1, producer=Producer.LEARNER))]
    if quickly:
        return quickly_folded(
            frames, encode(PartitionSealed(*(1, 1, 1, 2, 0, 1, 0, True, "", 0, "", (), (), 0, 0, 0)))[:10]
        )[0]
    return [printed(seal) for seal in folded(frames)[0]]
