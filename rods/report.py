"""The report of a run: one HTML page that needs nothing beside it, and the same figures as JSON."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from rods.charts import charts
from rods.summary import RunSummary
from rods.table import rise_line

TEMPLATES = Path(__file__).parent / "templates"


def report_page(summary: RunSummary, settings: Mapping[str, Any]) -> str:
    """The page. Whatever a task, a reason or a setting says is escaped; the page runs no script and loads nothing."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html").render(
        summary=summary,
        charts=charts(summary.epochs),
        settings=json.dumps(settings, indent=2, sort_keys=True, default=str),
        decimal=_decimal,
        rise_line=rise_line,
    )


def write_report(path: Path, summary: RunSummary, settings: Mapping[str, Any]) -> None:
    """Writes the page; it appears whole or not at all."""
    write_whole(path, report_page(summary, settings))


def write_summary(path: Path, summary: RunSummary) -> None:
    """Writes the summary as one JSON object (docs/cli.md names its keys); it appears whole or not at all."""
    write_whole(path, json.dumps(summary.document(), indent=2, allow_nan=False) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Replaces the file by one with this text, through a file beside it."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with scratch.open("w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
