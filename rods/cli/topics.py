"""``rods topics``: a run's topics on a broker of yours, as one file says."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rods.cli.cluster import Broker, Prefix, SettingsFile, cluster_settings

if TYPE_CHECKING:
    from rods.brokers.topics_plan import TopicChange

app = typer.Typer(no_args_is_help=True, help="Topics: partitions, retention, replication and message sizes.")

AsJson = Annotated[bool, typer.Option("--json", help="JSON lines, one a topic")]


@app.command("apply")
def apply_topics(
    broker: Broker = None,
    prefix: Prefix = None,
    partitions: Annotated[int | None, typer.Option(help="N, the partitions of topics keyed by task")] = None,
    file: Annotated[Path | None, typer.Option(help="the topics file (default: infra/kafka/topics.toml)")] = None,
    settings: SettingsFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="make the changes, rather than only showing them")] = False,
    as_json: AsJson = False,
) -> None:
    """Shows what would change for the topics to be as the file says; --yes makes it so."""
    import asyncio

    from rods.brokers.topics import planned

    chosen = cluster_settings(settings, broker=broker, prefix=prefix, partitions=partitions)
    changes = asyncio.run(planned(chosen, file, apply=yes))
    for change in changes:
        typer.echo(json.dumps(_document(change)) if as_json else _line(change))
    pending = sum(change.changes_something for change in changes)
    if pending and not yes:
        typer.echo(f"nothing is changed yet: {pending} topics would be; add --yes", err=True)


@app.command("list")
def list_topics(
    broker: Broker = None, prefix: Prefix = None, settings: SettingsFile = None, as_json: AsJson = False
) -> None:
    """The topics of a prefix as the broker has them."""
    import asyncio

    from rods.brokers.topics import listed

    rows = asyncio.run(listed(cluster_settings(settings, broker=broker, prefix=prefix)))
    if not as_json:
        typer.echo(f"{'topic':<28}{'partitions':>11}{'replication':>12}{'records':>10}  retention, largest message")
    for row in rows:
        typer.echo(json.dumps(row) if as_json else _row(row))


def _document(change: "TopicChange") -> dict[str, Any]:
    return {
        "topic": change.spec.name,
        "action": change.action,
        "partitions": change.spec.partitions,
        "replication": change.spec.replication,
        "differences": {d.name: {"before": d.before, "after": d.after} for d in change.differences},
        "notes": list(change.notes),
    }


def _line(change: "TopicChange") -> str:
    spec, found = change.spec, change.found
    parts = [f"{d.name}: {d.before if d.before is not None else 'not set'} -> {d.after}" for d in change.differences]
    if found is None:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(spec.config.items()))
        parts = [f"partitions {spec.partitions}, replication {spec.replication}, {settings}"]
    elif found.partitions != spec.partitions:
        parts.insert(0, f"partitions: {found.partitions} -> {spec.partitions}")
    return f"{change.action:<10}{spec.name:<28}{'; '.join([*parts, *change.notes])}".rstrip()


def _row(row: dict[str, Any]) -> str:
    kept = (
        "not told" if row["retention_ms"] is None else f"{_span(row['retention_ms'])}, {row['max_message_bytes']} bytes"
    )
    return f"{row['topic']:<28}{row['partitions']:>11}{row['replication']:>12}{row['records']:>10}  {kept}"


def _span(milliseconds: int) -> str:
    return "for ever" if milliseconds < 0 else f"{milliseconds / 86_400_000:g} days"
