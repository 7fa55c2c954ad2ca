"""What the auditing commands read: a run folder, an archive folder, or the topics of a live cluster."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.errors import UserError

if TYPE_CHECKING:
    from streams.audit.compare.limits import Provenance
    from streams.audit.load.source import LogSource

Run = Annotated[Path | None, typer.Argument(metavar="RUN", help="a run folder, or an archive folder")]
Broker = Annotated[str | None, typer.Option("--broker", help="HOST:PORT of a live cluster, instead of a folder")]
Prefix = Annotated[str, typer.Option("--prefix", help="prefix of the run's topics on the cluster")]
ToEpoch = Annotated[int | None, typer.Option("--to-epoch", min=0, help="up to this epoch (default: all)")]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout and nothing else there")]


@contextmanager
def audit_errors() -> Iterator[None]:
    """An error of the audit is a user's error: the log is not what was said, or cannot be read."""
    from rods.wrong_setting import wrong_setting
    from streams.archive.errors import ArchiveError
    from streams.audit.errors import AuditError, InvalidRuleError

    try:
        yield
    except InvalidRuleError as error:
        raise UserError(wrong_setting(error.cause)) from error
    except (AuditError, ArchiveError) as error:
        raise UserError(str(error)) from error


def open_log(run: Path | None, broker: str | None = None, prefix: str = "rods.") -> "LogSource":
    """The log that a command names. Raises UserError."""
    from streams.audit.load.source import ArchiveSource, ClusterSource

    if (run is None) == (broker is None):
        raise UserError("name a run folder, an archive folder, or a cluster with --broker HOST:PORT")
    with audit_errors():
        if broker is not None:
            from rods.brokers.connection import connection_of
            from rods.settings import load_settings

            return ClusterSource.open(connection_of(load_settings(None, {"broker": broker, "prefix": prefix})), prefix)
        assert run is not None
        return ArchiveSource(archive_folder(run))


def archive_folder(run: Path) -> Path:
    """The archive of a run folder, or the folder itself where it is an archive. Raises UserError."""
    from rods.run_folder import RunFolder

    if not (run / "run.json").exists() and (run / "epochs").is_dir():
        return run
    folder = RunFolder(run)
    folder.check_format()
    return folder.archive


def provenance_here() -> "Provenance":
    """The code that audits."""
    from rods.learner_process import code_revision, package_versions
    from streams.audit.compare.limits import Provenance

    return Provenance(code_revision(), package_versions())


def columns_folder(run: Path | None) -> Path | None:
    """Where a run folder keeps the audit's side files; None for a bare archive and for a cluster."""
    return run / "columns" if run is not None and (run / "run.json").exists() else None


def show(document: dict[str, Any], lines: Iterable[str], as_json: bool, *, good: bool = True) -> None:
    """Prints a report as one JSON object, or line by line. Raises typer.Exit with code 1 where what it says is bad."""
    if as_json:
        typer.echo(json.dumps(document))
    else:
        for line in lines:
            say(line)
    if not good:
        raise typer.Exit(1)


@contextmanager
def bar(words: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr; it takes what is done and how much there is, 0 where that is not known."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn

    count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn(words), BarColumn(), count, TextColumn("" if unit == "bytes" else unit))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(words, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total or None)


def say(line: str) -> None:
    """Prints a line of a log's own words: what a terminal would act on is shown, not sent."""
    typer.echo("".join([char if char.isprintable() else ascii(char)[1:-1] for char in line]))
