"""The cuts of an embedded run: at each place that a resume may start from, the ends of the log go to the archive.

    StepClosed or EpochClosed -> ends, read while the learner writes nothing -> (training goes on)
        -> the archiver has sealed up to them -> cuts.jsonl

A cut carries the name of its checkpoint, and a checkpoint that a cut names is never deleted. A cut that the archive
does not reach in time is none: the run goes on, and a resume starts from the one before.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path

from learner.checkpoint_files import saved_checkpoints
from learner.log import LearnerLog
from schemas.topics import Topic
from streams.archive.cut import finish_cut, read_cuts, read_ends
from streams.archive.errors import ArchiveError

logger = logging.getLogger(__name__)

FINISH_SECONDS = 30.0


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


@dataclass(slots=True)
class Cuts:
    """archive, checkpoints: folders. every: steps between cuts within an epoch; 0: epochs alone."""

    archive: Path
    checkpoints: Path
    every: int = 0
    _waiting: "asyncio.Task[None] | None" = None
    _pending: set[str] = field(default_factory=set)

    def named(self) -> set[str]:
        """The checkpoints that a cut names, or is about to."""
        return {cut.name for cut in read_cuts(self.archive)} | self._pending

    def due(self, step: int) -> bool:
        """Whether a step within an epoch is a place to resume from."""
        return bool(self.every) and step % self.every == 0

    async def take(self, log: LearnerLog, step: int) -> None:
        """Reads the ends now, and records the cut later. The caller writes nothing until this returns."""
        name = cut_name(step, self.checkpoints)
        self._pending.add(name)
        ends = await read_ends(log.broker, log.prefix, log.partitions)
        self._waiting = asyncio.create_task(self._record(self._waiting, name, ends), name="cut")

    async def finish(self) -> None:
        """Waits for the cuts that are under way."""
        if self._waiting is not None:
            await self._waiting

    async def drop(self) -> None:
        """Gives up what is under way."""
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.gather(self._waiting, return_exceptions=True)

    async def _record(self, before: "asyncio.Task[None] | None", name: str, ends: dict[tuple[Topic, int], int]) -> None:
        if before is not None:
            await before
        try:
            cut = await finish_cut(self.archive, name, ends, FINISH_SECONDS)
            logger.info("cut %d after %s", cut.number, name)
        except ArchiveError as error:
            logger.warning("no cut after %s: %s", name, error)
        self._pending.discard(name)
