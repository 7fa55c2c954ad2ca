"""Task sources by name. A source is imported when it is asked for, since some bring large packages along."""

from collections.abc import Callable

from producers.environments.errors import TaskSourceError
from producers.environments.port import TaskSource


def _workbench() -> TaskSource:
    from producers.environments.workbench.source import WorkbenchSource

    return WorkbenchSource()


def _bfcl() -> TaskSource:
    from producers.environments.bfcl.source import BfclSource

    return BfclSource()


SOURCES: dict[str, Callable[[], TaskSource]] = {"workbench": _workbench, "bfcl": _bfcl}


def open_source(name: str) -> TaskSource:
    """The source that runs tasks of this name; which tasks it lists is of no matter here. Raises TaskSourceError."""
    if name not in SOURCES:
        raise TaskSourceError(f"there is no task source {name[:40]!r}; choose one of {', '.join(SOURCES)}")
    return SOURCES[name]()
