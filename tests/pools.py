"""Every pool of an archive, recomputed."""

from pathlib import Path

from streams.audit.load.source import ArchiveSource
from streams.audit.recompute.pool_epoch import last_epoch, pool_of
from streams.pool.replay import ReplayedPool


def pools_of(archive: Path) -> list[ReplayedPool]:
    """In order of epochs."""
    source = ArchiveSource(archive)
    last = last_epoch(source)
    assert last is not None
    return [pool_of(source, epoch) for epoch in range(last + 1)]
