from dataclasses import replace
from typing import Any

import pytest

from schemas.rules import MeasureRules, Rules
from streams.errors import UnassembledSealError
from streams.measure.state import Evolved, MeasureState
from streams.seals.recovery import Recovery, recover
from tests.streams.rollout_log import barrier, expected, folded, result, started

WINDOW = Rules(measure=MeasureRules(window=2))


def log() -> list[Any]:
    events: list[Any] = [started(1)]
    for step in range(1, 7):
        if step == 4:
            events.append(started(2))
        done = ("a", "b", "c")[: 1 + step % 3]
        events += [result(task, passed=(step % 3, 1, None, 2), step=step) for task in done]
        generation = 1 if step < 4 else 2
        tasks = [expected(task, step=step) for task in ("a", "b", "c")[: 1 + (step + 1) % 3]]
        events.append(
            barrier(*tasks, step=step, epoch=1 + step // 4, last=step in (3, 6), rules=WINDOW, generation=generation)
        )
    return events


def recovered(steps: list[Evolved], up_to: int) -> MeasureState:
    recovery = Recovery(MeasureState(0))
    for evolved in steps[:up_to]:
        for chunk in evolved.seals:
            recovery = recover(recovery, chunk)
    return recovery.state


def test_a_worker_that_died_anywhere_goes_on_as_if_it_had_not() -> None:
    events = log()
    steps = folded(events)
    for died in range(len(events) + 1):
        state = recovered(steps, died)
        again = folded(events[state.next_offset :], state)
        assert again == steps[state.next_offset :], f"died at {died}"
        assert state.next_offset <= died


def test_the_newest_generation_outlives_a_restart() -> None:
    events = [started(2), barrier(generation=2), barrier(step=2, generation=1)]
    state = recovered(folded(events), 2)
    assert folded(events[2:], state)[0].seals == () and state.generation == 2


def test_recovery_may_begin_at_the_last_seal_of_an_epoch() -> None:
    steps = folded(log())
    seals = [chunk for evolved in steps for chunk in evolved.seals]
    recovery = Recovery(MeasureState(0))
    for chunk in seals[2:]:
        recovery = recover(recovery, chunk)
    assert recovery.state == recovered(steps, len(steps))


def test_a_seal_written_twice_and_seals_of_other_partitions_change_nothing() -> None:
    chunks = [chunk for evolved in folded(log()) for chunk in evolved.seals]
    recovery = Recovery(MeasureState(0))
    for chunk in chunks:
        for event in (replace(chunk, partition=1), chunk, chunk, chunks[0]):
            recovery = recover(recovery, event)
    assert recovery.state == recovered(folded(log()), len(log()))


def test_a_missing_seal_stops_recovery() -> None:
    chunks = [chunk for evolved in folded(log()) for chunk in evolved.seals]
    recovery = recover(Recovery(MeasureState(0)), chunks[0])
    with pytest.raises(UnassembledSealError, match="lost a seal"):
        for chunk in (replace(chunks[2], last_of_epoch=False),):
            recover(recovery, chunk)


def test_a_half_written_seal_is_folded_again() -> None:
    chunk = folded(log())[2].seals or folded(log())[3].seals
    half = replace(chunk[0], chunks=2)
    assert recover(Recovery(MeasureState(0)), half).state == MeasureState(0)
