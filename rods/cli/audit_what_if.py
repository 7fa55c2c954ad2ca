"""``rods audit what-if``: the same rollouts under other rules."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.run_log import Broker, Json, Prefix, Run, ToEpoch, audit_errors, open_log, show

if TYPE_CHECKING:
    from streams.audit.compare.changes import Change, EpochChanges

OFF_POLICY = (
    "off-policy: the rollouts are those of the policy that the recorded curriculum trained; past the first epoch this "
    "is about the rules, not about the training that would have followed"
)


def what_if(
    run: Run = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", help="as in measure.alpha_low=0.3; may be repeated")
    ] = None,
    to_epoch: ToEpoch = None,
    broker: Broker = None,
    prefix: Prefix = "rods.",
    as_json: Json = False,
) -> None:
    """Which seeds, injections and retirements other rules would have changed, and why. Exit code 0 either way."""
    from streams.audit.overlay import Overlay
    from streams.audit.what_if import what_if as decide

    with audit_errors():
        overlay = Overlay.parse(assignments or ())
        epochs = decide(open_log(run, broker, prefix), overlay, to_epoch)
    show(document(epochs, assignments or ()), lines(epochs, assignments or ()), as_json)


def document(epochs: "Sequence[EpochChanges]", assignments: Sequence[str]) -> dict[str, Any]:
    """The answer as JSON holds it; keys are stable."""
    return {
        "off_policy": True,
        "set": list(assignments),
        "changes": sum(epoch.changes for epoch in epochs),
        "drift_evictions": sum(epoch.drift_evictions for epoch in epochs),
        "avoided_by_two_visits": sum(epoch.avoided for epoch in epochs),
        "epochs": [epoch.document() for epoch in epochs],
    }


def lines(epochs: "Sequence[EpochChanges]", assignments: Sequence[str]) -> Iterator[str]:
    """The answer for a person."""
    yield f"under {', '.join(assignments) or 'the recorded rules'}; {OFF_POLICY}"
    for epoch in epochs:
        yield (
            f"epoch {epoch.epoch}: {len(epoch.seeds)} seeds, {len(epoch.injections)} injections, "
            f"{len(epoch.retirements)} retirements; {epoch.changes} decisions differ"
        )
        yield from _changes("+ seed", epoch.seeds_added)
        yield from _changes("- seed", epoch.seeds_dropped)
        yield from _changes("+ injected", epoch.injections_added)
        yield from _changes("- injected", epoch.injections_dropped)
        yield from _changes("+ retired", epoch.retirements_added)
        yield from _changes("- retired", epoch.retirements_dropped)
        if epoch.unknown_seeds:
            yield f"  nobody made variants of the {epoch.unknown_seeds} added seeds, so none of theirs is injected"
    evictions, avoided = sum(one.drift_evictions for one in epochs), sum(one.avoided for one in epochs)
    yield f"{evictions} recorded evictions for drift, of which a patience of two visits would have avoided {avoided}"
    if not any(epoch.changes for epoch in epochs):
        yield "no decision differs"


def _changes(sign: str, changes: "Sequence[Change]") -> Iterator[str]:
    there, absent = ("under these rules", "recorded") if sign.startswith("+") else ("recorded", "under these rules")
    for change in changes:
        at = f" at step {change.step}" if change.step else ""
        yield f"  {sign} {change.task}{at}: {there} {change.why}; {absent} {change.why_not}"
