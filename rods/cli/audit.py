"""``rods audit``: reading a run back, months later. One file a verb."""

import typer

from rods.cli import audit_diff, audit_drift, audit_replay, audit_verify, audit_what_if

app = typer.Typer(no_args_is_help=True, help="Whether a run's decisions follow from its facts, and how it drifted.")


@app.callback()
def _audit() -> None:
    """Reads an archive or a live cluster."""


app.command("diff")(audit_diff.diff)
app.command("drift")(audit_drift.drift)
app.command("replay")(audit_replay.replay)
app.command("verify")(audit_verify.verify)
app.command("what-if")(audit_what_if.what_if)
