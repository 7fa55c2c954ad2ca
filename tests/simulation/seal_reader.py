"""What the workers of a world read of the seals, which is the same for all: a beginning of the log is folded once."""

from collections.abc import Sequence

from streams.measure.state import MeasureState
from streams.seals.reader import SealLog
from streams.seals.recovery import Recovery
from tests.simulation.log import SEALS, Log


class SealReader:
    """Folds the seals by the real code for all partitions, as far as anybody has asked."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._read = self._fresh()
        self._next = 0

    def read(self, partitions: Sequence[int], end: int) -> SealLog:
        """What somebody who gets these partitions knows from the seals below `end`. Raises what the fold raises."""
        whole = self._read if self._next <= end else self._fresh()
        start = self._next if self._next <= end else 0
        for offset, value in enumerate(self._log.records[SEALS][start:end], start):
            whole.take(offset, value)
        if whole is self._read:
            self._next = end
        measure = {number: whole.measure[number] for number in partitions}
        return SealLog(measure, whole.select, dict(whole.seeds))

    def _fresh(self) -> SealLog:
        return SealLog({number: Recovery(MeasureState(number)) for number in range(self._log.partitions)})
