"""The closed lists of names (names.toml) and numbers that a workbench task may speak of.

Every name is a single word and belongs to exactly one list, so that a value tells its own kind. The lists are closed
on purpose: a word-level tokenizer covers all of them, and a name the model invents is refused.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from producers.environments.jsonlines import Record
from producers.environments.tables import load

Value = str | int
LARGEST = 99


class Kind(StrEnum):
    """What a value stands for. TEXT is any single value; LISTING is a result of several values and feeds nothing."""

    FILE = "file"
    FOLDER = "folder"
    EVENT = "event"
    PERSON = "person"
    DAY = "day"
    CITY = "city"
    HOUR = "hour"
    AMOUNT = "amount"
    TEXT = "text"
    LISTING = "listing"


HOURS = tuple(range(8, 21))
AMOUNTS = tuple(range(LARGEST + 1))


class _Names(Record):
    file: str
    folder: str
    event: str
    person: str
    day: str
    city: str


NAMES: Mapping[Kind, tuple[str, ...]] = {
    Kind(kind): tuple(names.split()) for kind, names in load(Path(__file__).with_name("names.toml"), _Names)
}
_KIND_OF_NAME: Mapping[str, Kind] = {name: kind for kind, names in NAMES.items() for name in names}


def kind_of(value: Value) -> Kind | None:
    """The kind of a single value; a number counts as an amount. None for a value outside the lists."""
    if isinstance(value, int):
        return Kind.AMOUNT if 0 <= value <= LARGEST and not isinstance(value, bool) else None
    return _KIND_OF_NAME.get(value)


def belongs(value: object, kind: Kind) -> bool:
    """Whether a value of unknown origin may stand where `kind` is asked for."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    if kind is Kind.HOUR:
        return value in HOURS
    if kind is Kind.TEXT:
        return kind_of(value) is not None
    return kind_of(value) is kind


def show(value: Value) -> str:
    """A value as requests, calls and results write it: names in quotes, numbers bare."""
    return str(value) if isinstance(value, int) else f"'{value}'"
