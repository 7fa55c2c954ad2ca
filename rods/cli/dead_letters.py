"""``rods dead-letters``: what readers refused, and the way back."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.cluster import Broker, Prefix, SettingsFile, cluster_settings

if TYPE_CHECKING:
    from rods.brokers.dead_letters import Letter

app = typer.Typer(no_args_is_help=True, help="Records that readers refused.")

AsJson = Annotated[bool, typer.Option("--json", help="JSON lines, one a letter")]


@app.command("list")
def list_letters(
    broker: Broker = None, prefix: Prefix = None, settings: SettingsFile = None, as_json: AsJson = False
) -> None:
    """Every refused record: where it stood, why, and whether it can be written back."""
    import asyncio

    from rods.brokers.dead_letters import letters

    found = asyncio.run(letters(cluster_settings(settings, broker=broker, prefix=prefix)))
    for letter in found:
        typer.echo(json.dumps(_document(letter)) if as_json else _line(letter))


@app.command("replay")
def replay_letters(
    numbers: Annotated[list[int] | None, typer.Argument(help="numbers of letters, as `list` shows them")] = None,
    every: Annotated[bool, typer.Option("--all", help="every letter that can be written back")] = False,
    broker: Broker = None,
    prefix: Prefix = None,
    settings: SettingsFile = None,
    as_json: AsJson = False,
) -> None:
    """Writes the original bytes back to the partition they came from. A result that comes back is late: it is counted
    and decides nothing. Exit code 1: some letters could not go back."""
    import asyncio

    from rods.brokers.dead_letters import replay
    from rods.errors import UserError

    if bool(numbers) == every:
        raise UserError("name the letters to write back, or --all of them")
    chosen = cluster_settings(settings, broker=broker, prefix=prefix)
    replayed = asyncio.run(replay(chosen, None if every else numbers))
    for one in replayed:
        if as_json:
            typer.echo(json.dumps({**_document(one.letter), "replayed_offset": one.offset}))
        else:
            where = f"written back at offset {one.offset}" if one.offset is not None else one.letter.fate.why_not
            typer.echo(f"{_place(one.letter)}: {where}")
    if any(one.offset is None for one in replayed):
        raise typer.Exit(1)


def _document(letter: "Letter") -> dict[str, Any]:
    event = letter.event
    return {
        "number": letter.number,
        "topic": event.topic,
        "partition": event.partition,
        "offset": event.offset,
        "reason": event.reason,
        "sha256": event.sha256,
        "kept_bytes": letter.size,
        "fate": letter.fate,
        "occurred_at": event.envelope.occurred_at,
    }


def _line(letter: "Letter") -> str:
    kept = f"{letter.size} bytes, {letter.event.sha256[:12]}"
    return f"{_place(letter)}  {kept}  {letter.fate}  {_printable(letter.event.reason)}"


def _place(letter: "Letter") -> str:
    event = letter.event
    return f"{letter.number:>6}  {_printable(event.topic)}/{event.partition}@{event.offset}"


def _printable(text: str) -> str:
    """Text of a log is hostile: nothing in it moves a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
