from typing import Any

import pytest

from schemas.codec import encode
from schemas.errors import UnknownFingerprintError
from streams.measure.state import MeasureState
from streams.seals.reader import SealLog
from streams.seals.recovery import Recovery
from streams.select.fold import SelectState, evolve
from tests.streams.rollout_log import barrier, expected, folded, result


def log_of(*values: Any) -> SealLog:
    log = SealLog({0: Recovery(MeasureState(0))})
    for offset, value in enumerate(values):
        log.take(offset, value if isinstance(value, bytes) else encode(value))
    return log


def test_one_reading_gives_measure_and_select_their_states() -> None:
    steps = folded([result(), barrier(expected())])
    (seal,) = steps[-1].seals
    selected = evolve(SelectState(), 0, seal)
    log = log_of(seal, selected.proposed)
    assert log.states == {0: steps[-1].state}
    assert log.select.closed == 1 and log.select.next_offset == 2
    assert [seed.event.task for seed in log.seeds[1]] == ["t"]


def test_partitions_of_other_workers_are_not_kept() -> None:
    (seal,) = folded([barrier(partition=1, partitions=2)], MeasureState(1))[-1].seals
    assert log_of(seal).states == {0: MeasureState(0)}


def test_poison_is_passed_over_and_a_newer_schema_is_not() -> None:
    (seal,) = folded([barrier()])[-1].seals
    assert log_of(b"garbage", seal).states[0].step == 1
    with pytest.raises(UnknownFingerprintError):
        log_of(b"\xc3\x01" + b"12345678")
