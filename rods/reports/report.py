"""The report of a run: one HTML page that needs nothing beside it, and the same figures as JSON."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from rods.reports.charts import charts
from rods.reports.summary import RunSummary
from rods.reports.table import decimal, uplift_line

_TEMPLATES = Path(__file__).parent / "templates"


def template(name: str) -> jinja2.Template:
    """A page: whatever the log says in it is escaped; it runs no script and loads nothing."""
    loader = jinja2.FileSystemLoader(_TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.get_template(name)


def report_page(summary: RunSummary, settings: Mapping[str, Any]) -> str:
    """The page of a run."""
    return template("report.html").render(
        summary=summary,
        charts=charts(summary.epochs),
        settings=json.dumps(settings, indent=2, sort_keys=True, default=str),
        decimal=decimal,
        uplift_line=uplift_line,
    )


def write_report(path: Path, summary: RunSummary, settings: Mapping[str, Any]) -> None:
    """Writes the page; it appears complete or not at all."""
    write_whole(path, report_page(summary, settings))


def write_summary(path: Path, summary: RunSummary) -> None:
    """Writes the summary as one JSON object (docs/cli.md names its keys); it appears complete or not at all."""
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
