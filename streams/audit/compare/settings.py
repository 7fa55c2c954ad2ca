"""The settings that decisions were made by, against those that the epoch was opened with. Pure."""

import json
from collections.abc import Iterable, Iterator

from schemas.topics import Topic
from streams.audit.compare.divergence import ABSENT, Divergence, Stage, differences, shown
from streams.audit.load.epochs import RunFacts
from streams.audit.load.source import LogSource
from streams.audit.recompute.boundaries import Boundary
from streams.audit.recompute.select import RecordedSeal


def settings_divergences(
    source: LogSource, run: RunFacts, seals: Iterable[RecordedSeal], boundaries: Iterable[Boundary]
) -> list[Divergence]:
    """Rules change at EpochOpened alone, and an epoch closes with the pool of its boundary."""
    return [*_seals(source, run, seals), *_closings(source, run, boundaries)]


def _seals(source: LogSource, run: RunFacts, seals: Iterable[RecordedSeal]) -> Iterator[Divergence]:
    told: set[tuple[int, str]] = set()
    for seal in seals:
        opened = run.opened.get(seal.epoch)
        if opened is None or opened.rules == seal.rules or (seal.epoch, seal.rules) in told:
            continue
        told.add((seal.epoch, seal.rules))
        yield Divergence(
            Stage.SETTINGS,
            seal.epoch,
            seal.step,
            source.place(Topic.SEALS, 0, seal.offset),
            f"the rules of epoch {seal.epoch}",
            *_difference(opened.rules, seal.rules),
            evidence=(f"EpochOpened: {source.place(Topic.EPOCHS, 0, run.opened_at[seal.epoch])}",),
        )


def _difference(opened: str, used: str) -> tuple[str, str, str]:
    try:
        found = next(differences(json.loads(used), json.loads(opened)), None)
    except (ValueError, RecursionError):
        found = None
    return (found.path, found.recorded, found.recomputed) if found else ("rules", shown(used), shown(opened))


def _closings(source: LogSource, run: RunFacts, boundaries: Iterable[Boundary]) -> Iterator[Divergence]:
    pools = {boundary.epoch: boundary for boundary in boundaries}
    for epoch, closed in run.closed.items():
        boundary = pools.get(epoch)
        recorded = (closed.pool_version, closed.pool_digest)
        if boundary and recorded == (boundary.version, boundary.digest):
            continue
        place = source.place(Topic.EPOCHS, 0, run.closed_at[epoch])
        recomputed = shown([boundary.version, boundary.digest]) if boundary else ABSENT
        step = boundary.last_step if boundary else 0
        yield Divergence(
            Stage.POOL, epoch, step, place, f"EpochClosed of epoch {epoch}", "pool", shown(list(recorded)), recomputed
        )
