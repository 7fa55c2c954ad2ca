from dataclasses import dataclass
from typing import Any

import pytest

from schemas.catalogue import EVENT_TYPES
from schemas.derive import avro_schema, encoder


@dataclass(frozen=True)
class Item:
    name: str


@dataclass(frozen=True)
class Everything:
    text: str
    size: int
    share: float | None
    raw: bytes
    done: bool
    items: tuple[Item, ...]
    last: Item | None
    counts: dict[str, int]
    occurred_at: int


@dataclass(frozen=True)
class Nested:
    maps: dict[str, Item]


@dataclass(frozen=True)
class Ambiguous:
    value: int | str


@dataclass(frozen=True)
class Pair:
    value: tuple[int, str]


def test_each_python_type_has_its_avro_type() -> None:
    types = {field["name"]: field["type"] for field in avro_schema(Everything)["fields"]}
    assert types["text"] == "string"
    assert types["size"] == "long"
    assert types["share"] == ["null", "double"]
    assert types["raw"] == "bytes"
    assert types["done"] == "boolean"
    assert types["items"]["items"]["name"] == "Item"
    assert types["last"] == ["null", "rods.events.Item"]
    assert types["counts"] == {"type": "map", "values": "long"}
    assert types["occurred_at"] == {"type": "long", "logicalType": "timestamp-micros"}


def test_an_optional_field_defaults_to_null_and_no_other_has_a_default() -> None:
    defaults = {field["name"] for field in avro_schema(Everything)["fields"] if "default" in field}
    assert defaults == {"share", "last"}


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_deriving_twice_gives_the_same_schema(event_type: type[Any]) -> None:
    assert avro_schema(event_type) == avro_schema(event_type)


@pytest.mark.parametrize("record", [Ambiguous, Pair])
def test_a_type_without_an_avro_type_is_refused(record: type[Any]) -> None:
    with pytest.raises(TypeError, match="no Avro type"):
        avro_schema(record)


def test_a_map_of_records_is_refused() -> None:
    with pytest.raises(TypeError, match="maps hold plain values only"):
        encoder(Nested)
