"""``rods audit diff``: two runs side by side."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rods.cli.run_log import Json, Prefix, Run, ToEpoch, audit_errors, open_log, show
from rods.errors import UserError

if TYPE_CHECKING:
    from streams.audit.compare.runs import Contrast, EpochContrast
    from streams.audit.load.source import LogSource

_MOST = 10
_NAME_TWO = (
    "name two runs: two folders, a folder and --broker HOST:PORT, or --broker HOST:PORT and --other-prefix for two on "
    "clusters"
)


class ClusterRun(NamedTuple):
    """A run on a cluster, as far as flags name one."""

    broker: str | None
    prefix: str | None


def diff(
    run: Run = None,
    other: Annotated[Path | None, typer.Argument(metavar="RUN", help="the other one")] = None,
    to_epoch: ToEpoch = None,
    broker: Annotated[
        str | None, typer.Option("--broker", help="HOST:PORT of a live cluster, for runs that are no folder")
    ] = None,
    prefix: Prefix = "rods.",
    other_broker: Annotated[
        str | None, typer.Option("--other-broker", help="the other run's cluster (default: the same)")
    ] = None,
    other_prefix: Annotated[
        str | None, typer.Option("--other-prefix", help="prefix of the other run's topics on the cluster")
    ] = None,
    as_json: Json = False,
) -> None:
    """Where two runs begin to differ: settings, rollouts, seeds, pools; folders come first, then what is on a cluster.
    Exit code 1: a decision differs."""
    from streams.audit.compare.runs import compare_runs

    one, another = _two_logs(_named(run, other, ClusterRun(broker, prefix), ClusterRun(other_broker, other_prefix)))
    with audit_errors():
        contrast = compare_runs(one, another, to_epoch)
    document = {
        "run_ids": list(contrast.run_ids),
        "equal": contrast.equal,
        "settings": [found._asdict() for found in contrast.settings],
        "epochs": [epoch.document() for epoch in contrast.epochs],
    }
    show(document, lines(contrast), as_json, good=contrast.equal)


def _named(run: Path | None, other: Path | None, first: ClusterRun, second: ClusterRun) -> "list[Path | ClusterRun]":
    """What the flags name, in order: folders, then runs on clusters."""
    named: list[Path | ClusterRun] = [folder for folder in (run, other) if folder is not None]
    if first.broker is not None:
        named.append(first)
    if second != (None, None):
        named.append(ClusterRun(second.broker or first.broker, second.prefix or first.prefix))
    return named


def _two_logs(named: "list[Path | ClusterRun]") -> "list[LogSource]":
    """Raises UserError where these are not two."""
    if len(named) != 2 or any(isinstance(one, ClusterRun) and one.broker is None for one in named):
        raise UserError(_NAME_TWO)
    return [open_log(one) if isinstance(one, Path) else open_log(None, one.broker, one.prefix or "") for one in named]


def lines(contrast: "Contrast") -> Iterator[str]:
    """The contrast for a person."""
    one, other = contrast.run_ids
    yield f"run {one} against run {other}"
    for found in contrast.settings:
        yield f"  {found.path}: {found.recorded} against {found.recomputed}"
    for epoch in contrast.epochs:
        yield f"epoch {epoch.epoch}: " + ("equal" if epoch.equal else _differing(epoch))
    if contrast.first is not None:
        yield from _first(contrast.first)
    else:
        yield "both decided alike"


def _differing(epoch: "EpochContrast") -> str:
    members, seeds = [len(one) for one in epoch.members], [len(one) for one in epoch.seeds]
    return (
        f"pools {'equal' if epoch.pools_equal else 'differ'}; only in one: members {members[0]} and {members[1]}, "
        f"seeds {seeds[0]} and {seeds[1]}, groups {epoch.groups[0]} and {epoch.groups[1]}; "
        f"groups of both with other results {len(epoch.rollouts)}"
    )


def _first(epoch: "EpochContrast") -> Iterator[str]:
    yield f"they begin to differ in epoch {epoch.epoch}"
    for what, pair in (("member", epoch.members), ("seed", epoch.seeds)):
        for which, names in zip(("first", "second"), pair, strict=True):
            for name in names[:_MOST]:
                yield f"  {what} of the {which} run only: {name}"
    for group in epoch.rollouts[:_MOST]:
        yield f"  group with other results: {group}"
