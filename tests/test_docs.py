"""The documents describe what is there: commands, targets, links and keys they name exist."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import typer.main

from rods.cli.main import app
from rods.reports.summary import EpochSummary, RunSummary
from rods.reports.uplift import Uplift

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text()


def named(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"`make ([a-z-]+)", page.read_text()))
    assert {target for target in targets if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)} == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_and_their_options_exist(page: Path) -> None:
    for line in re.findall(r"rods ((?:[a-z-]+ ?)+(?: --[^`#\n]*)?)", page.read_text()):
        words = line.split()
        command = typer.main.get_command(app)
        while words and (found := getattr(command, "commands", {}).get(words[0])):
            command = found
            words = words[1:]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, line


def test_every_key_of_the_summary_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    keys = [field.name for kind in (RunSummary, EpochSummary, Uplift) for field in fields(kind)]
    assert [key for key in keys if f"`{key}`" not in page] == []


def test_every_target_says_what_it_does() -> None:
    targets = re.findall(r"^([a-z-]+):(?!=).*$", MAKEFILE, re.MULTILINE)
    described = re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.MULTILINE)
    assert targets == described
