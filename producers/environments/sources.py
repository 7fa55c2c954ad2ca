"""The task sources by name. A source is imported when it is asked for: one may need a package another does not."""

from collections.abc import Callable

from producers.environments.errors import TaskSourceError
from producers.environments.port import TaskSource

SPLITS = ("train", "heldout")


def _workbench() -> TaskSource:
    from producers.environments.workbench.source import WorkbenchSource

    return WorkbenchSource()


def _bfcl() -> TaskSource:
    from producers.environments.bfcl.source import BfclSource

    return BfclSource()


SOURCES: dict[str, Callable[[], TaskSource]] = {"workbench": _workbench, "bfcl": _bfcl}


def source_named(name: str) -> TaskSource:
    """A source under its default settings. Raises TaskSourceError for a name that no source has."""
    if name not in SOURCES:
        raise TaskSourceError(f"there is no task source {name[:80]!r}: take {' or '.join(SOURCES)}")
    return SOURCES[name]()
