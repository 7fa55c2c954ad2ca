"""``rods audit diff``: two runs side by side."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rods.cli.run_log import Json, ToEpoch, audit_errors, open_log, say

if TYPE_CHECKING:
    from streams.audit.comparison import Contrast, EpochContrast

_MOST = 10


def diff(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run folder, or an archive folder")],
    other: Annotated[Path, typer.Argument(metavar="RUN", help="the other one")],
    to_epoch: ToEpoch = None,
    as_json: Json = False,
) -> None:
    """Where two runs begin to differ: settings, rollouts, seeds, pools. Exit code 1: a decision differs."""
    from streams.audit.comparison import compare_runs

    with audit_errors():
        contrast = compare_runs(open_log(run), open_log(other), to_epoch)
    if as_json:
        document = {
            "run_ids": list(contrast.run_ids),
            "equal": contrast.equal,
            "settings": [found._asdict() for found in contrast.settings],
            "epochs": [epoch.document() for epoch in contrast.epochs],
        }
        typer.echo(json.dumps(document))
    else:
        for line in lines(contrast):
            say(line)
    if not contrast.equal:
        raise typer.Exit(1)


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
