"""A table that cannot be read is refused in one sentence that names the file and the entry."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from producers.environments.errors import TableError
from producers.environments.jsonlines import Record
from producers.environments.tables import load
from producers.synthesis.bfcl.table import ClassTable, Draw, FunctionTable, toolbox


class Colours(Record):
    names: tuple[str, ...]
    shades: Mapping[str, int] = {}


def table(folder: Path, text: str) -> Path:
    (folder / "colours.toml").write_text(text)
    return folder / "colours.toml"


def test_a_table_keeps_the_order_of_its_entries(tmp_path: Path) -> None:
    path = table(tmp_path, 'names = ["red", "blue"]\n[shades]\nred = 2\nblue = 1\n')
    assert load(path, Colours) == Colours(names=("red", "blue"), shades={"red": 2, "blue": 1})
    assert list(load(path, Colours).shades) == ["red", "blue"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("names = [1]", "names.0: Input should be a valid string"),
        ("names = []\nhues = 1", "hues: Extra inputs are not permitted"),
        ("shades = {}", "names: Field required"),
        ("names = [", "is not TOML"),
        ("names = 2026-01-01", "is not TOML"),
    ],
)
def test_a_flaw_is_named_with_its_entry(tmp_path: Path, text: str, reason: str) -> None:
    path = table(tmp_path, text)
    with pytest.raises(TableError) as raised:
        load(path, Colours)
    assert str(raised.value).startswith(str(path))
    assert reason in str(raised.value)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"none\.toml cannot be read: No such file"):
        load(tmp_path / "none.toml", Colours)


def test_a_table_and_its_code_name_the_same_things() -> None:
    calls = {"open": FunctionTable(say=("open it",), arguments={"door": "nearest", "wide": Draw(value=True)})}
    with pytest.raises(TableError, match=r"open\.arguments\.door: the class has no source 'nearest'"):
        toolbox(ClassTable(goals=(), chains=(), functions=calls))
    with pytest.raises(TableError, match="there is code for close, which the class's table does not hold"):
        toolbox(ClassTable(goals=(), chains=(), functions={}), effects={"close": lambda *_: None})


def test_a_draw_needs_values_and_a_list_that_exists() -> None:
    with pytest.raises(ValueError, match="there is no list 'colours'"):
        Draw(choice="colours")
    with pytest.raises(ValueError, match="there is nothing to draw from"):
        Draw(unused=True)
