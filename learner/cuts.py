"""The cuts of an embedded run: at each place that a resume may start from, the ends of the log go to the archive.

    StepClosed or EpochClosed -> ends, read while the learner writes nothing -> cuts.pending -> (training goes on)
        -> the archiver has sealed up to them -> cuts.jsonl

A cut carries the name of its checkpoint, and a checkpoint that a cut names is never deleted. What is pending when
everything is killed becomes a cut later, if the archive came so far.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from learner.checkpoint_files import saved_checkpoints
from learner.log import LearnerLog
from schemas.topics import Topic
from streams.archive.cut import Cut, archived_end, place_name, read_cuts, read_ends, record_cut
from streams.archive.durable import replace_durably

logger = logging.getLogger(__name__)

PENDING = "cuts.pending"
FINISH_SECONDS = 30.0
_POLL_SECONDS = 0.1

Ends = Mapping[tuple[Topic, int], int]


class Pending(NamedTuple):
    """A cut that the archive does not hold yet."""

    name: str
    ends: Ends


def cut_name(step: int, checkpoints: Path) -> str:
    """The checkpoint that training goes on from after a step, or the step where nothing but the log is needed."""
    found = [folder.name for saved, folder in saved_checkpoints(checkpoints) if saved == step]
    return found[-1] if found and step else f"step-{step:06d}"


def step_of(name: str) -> int:
    """The step after which a cut was taken. Raises ValueError for a name that `cut_name` does not give."""
    kind, _, rest = name.partition("-")
    if kind not in ("step", "checkpoint"):
        raise ValueError(f"{name[:40]!r} names no checkpoint")
    return int(rest.partition("-")[0])


def record_pending(archive: Path) -> list[Cut]:
    """Records the pending cuts that the archive holds by now, oldest first. Raises ArchiveError."""
    recorded = []
    pending = read_pending(archive)
    while pending and all(archived_end(archive, *place) >= end for place, end in pending[0].ends.items()):
        recorded.append(record_cut(archive, *pending.pop(0)))
        write_pending(archive, pending)
    return recorded


def read_pending(archive: Path) -> list[Pending]:
    """The pending cuts, oldest first; none where the file does not parse."""
    try:
        document = json.loads((archive / PENDING).read_text(encoding="utf-8"))
        return [Pending(str(name), _places(ends)) for name, ends in document]
    except (OSError, ValueError, TypeError, AttributeError):
        return []


def write_pending(archive: Path, pending: Sequence[Pending]) -> None:
    """Replaces the pending cuts; the file appears complete and durable."""
    archive.mkdir(parents=True, exist_ok=True)
    document = [(name, {place_name(*place): end for place, end in ends.items()}) for name, ends in pending]
    replace_durably(archive / PENDING, json.dumps(document).encode())


def _places(ends: Mapping[str, int]) -> dict[tuple[Topic, int], int]:
    named = [(*name.rpartition("/"), int(end)) for name, end in ends.items()]
    return {(Topic(topic), int(number)): end for topic, _, number, end in named}


@dataclass(slots=True)
class Cuts:
    """archive, checkpoints: folders.
    every: steps between cuts within an epoch; 0: epochs alone.
    """

    archive: Path
    checkpoints: Path
    every: int = 0
    _recording: "asyncio.Task[None] | None" = None

    def named(self) -> set[str]:
        """The checkpoints that a cut names, or is about to."""
        return {cut.name for cut in read_cuts(self.archive)} | {cut.name for cut in read_pending(self.archive)}

    def due(self, step: int) -> bool:
        """Whether a step within an epoch is a place to resume from."""
        return bool(self.every) and step % self.every == 0

    async def take(self, log: LearnerLog, step: int) -> None:
        """Reads the ends now; the cut is recorded later. The caller writes nothing until this returns. A place that has
        a cut needs no other."""
        name = cut_name(step, self.checkpoints)
        if name in self.named():
            return
        ends = await read_ends(log.broker, log.prefix, log.partitions)
        write_pending(self.archive, [*read_pending(self.archive), Pending(name, ends)])
        if self._recording is None or self._recording.done():
            self._recording = asyncio.create_task(self._record(), name="cuts")

    async def finish(self) -> None:
        """Waits until the archive has come to the last cut, `FINISH_SECONDS` at most."""
        if self._recording is not None:
            await asyncio.wait((self._recording,), timeout=FINISH_SECONDS)
        await self.stop()

    async def stop(self) -> None:
        """Records nothing more. What is pending stays so."""
        if self._recording is not None:
            self._recording.cancel()
            await asyncio.gather(self._recording, return_exceptions=True)

    async def _record(self) -> None:
        while read_pending(self.archive):
            for cut in record_pending(self.archive):
                logger.info("cut %d after %s", cut.number, cut.name)
            await asyncio.sleep(_POLL_SECONDS)
