"""The documents describe what is there: commands, targets, links and keys they name exist."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import typer.main

from rods.cli.main import app
from rods.reports.summary import EpochSummary, RunSummary
from rods.reports.uplift import Uplift

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text()


def wrong(found: Callable[[Path], list[str]]) -> dict[str, list[str]]:
    """What a rule finds on each page that breaks it."""
    return {page.name: names for page in PAGES if (names := found(page))}


def test_links_lead_to_files() -> None:
    def dead(page: Path) -> list[str]:
        links = re.findall(r"\]\(([^)#]+)", page.read_text())
        return [link for link in links if "://" not in link and not (page.parent / link).exists()]

    assert wrong(dead) == {}


def test_make_targets_exist() -> None:
    def absent(page: Path) -> list[str]:
        targets = re.findall(r"`make ([a-z-]+)", page.read_text())
        return [target for target in targets if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)]

    assert wrong(absent) == {}


def test_commands_and_their_options_exist() -> None:
    def unknown(page: Path) -> list[str]:
        lines = re.findall(r"rods ((?:[a-z-]+ ?)+(?: --[^`#\n]*)?)", page.read_text())
        return [line for line in lines if not known(line.split())]

    assert wrong(unknown) == {}


def known(words: list[str]) -> bool:
    """Whether the options of a command line are all the command's."""
    command = typer.main.get_command(app)
    while words and (found := getattr(command, "commands", {}).get(words[0])):
        command = found
        words = words[1:]
    options = {option for parameter in command.params for option in parameter.opts}
    return {word for word in words if word.startswith("--")} <= options | {"--help"}


def test_every_key_of_the_summary_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    keys = [field.name for kind in (RunSummary, EpochSummary, Uplift) for field in fields(kind)]
    assert [key for key in keys if f"`{key}`" not in page] == []


def test_every_target_says_what_it_does() -> None:
    targets = re.findall(r"^([a-z-]+):(?!=).*$", MAKEFILE, re.MULTILINE)
    described = re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.MULTILINE)
    assert targets == described
