import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import avro.schema
import pytest

from schemas import codec, evolution
from schemas.catalogue import EVENT_TYPES
from schemas.codec import AVRO_FOLDER, decode, encode, fingerprint, schema_path, schema_text, schema_versions
from schemas.derive import NAMESPACE, avro_schema
from schemas.epochs import StepClosed
from schemas.errors import SchemaError
from tests.golden.events import sample

FILES = sorted(AVRO_FOLDER.glob("*.avsc"))
TIMESTAMP = re.compile(r'"type": \{\s*"type": "long",\s*"logicalType": "timestamp-micros"\s*\}')


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_the_newest_schema_file_is_what_the_type_says(event_type: type[Any]) -> None:
    newest = schema_versions(event_type.KIND)[-1]
    text = schema_path(event_type.KIND, newest).read_text()
    assert text == evolution.schema_source(avro_schema(event_type, newest))


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_versions_count_from_one_without_a_gap(event_type: type[Any]) -> None:
    versions = schema_versions(event_type.KIND)
    assert versions == list(range(1, len(versions) + 1))
    assert [schema_text(event_type.KIND, version)["version"] for version in versions] == versions


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_all_versions_read_each_other(event_type: type[Any]) -> None:
    assert evolution.incompatibilities(event_type.KIND) == []


def test_no_schema_file_is_without_a_type() -> None:
    known = {schema_path(kind.KIND, version) for kind in EVENT_TYPES for version in schema_versions(kind.KIND)}
    assert set(FILES) == known


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_fingerprints_are_those_of_the_reference_implementation(path: Path) -> None:
    """The avro package leaves ``{"type": "long"}`` of a logical type in its canonical form, where the specification
    asks for ``"long"``; it is given the schema without."""
    plain = TIMESTAMP.sub('"type": "long"', path.read_text())
    reference = avro.schema.parse(plain)
    assert fingerprint(json.loads(path.read_text())) == fingerprint(json.loads(plain))
    assert fingerprint(json.loads(plain)) == reference.fingerprint("CRC-64-AVRO")
    assert f"{reference.namespace}.{reference.name}" == f"{NAMESPACE}.{path.name.partition('.')[0]}"


def test_fingerprints_tell_all_versions_apart() -> None:
    prints = [fingerprint(json.loads(path.read_text())) for path in FILES]
    assert len(set(prints)) == len(FILES)


def test_the_index_names_every_file_with_its_digest() -> None:
    recorded = json.loads(evolution.INDEX_PATH.read_text())
    assert recorded == evolution.index()
    assert {name: entry["sha256"] for name, entry in recorded.items()} == {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in FILES
    }


def test_writing_when_nothing_changed_writes_no_schema() -> None:
    before = {path: path.read_bytes() for path in [*FILES, evolution.INDEX_PATH]}
    assert evolution.write() == []
    assert {path: path.read_bytes() for path in before} == before


@pytest.fixture
def catalogue_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The schema files in a scratch folder, which the codec takes for the catalogue."""
    for path in [*FILES, evolution.INDEX_PATH]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr("schemas.codec.AVRO_FOLDER", tmp_path)
    monkeypatch.setattr("schemas.evolution.INDEX_PATH", tmp_path / "index.json")
    _forget_schemas()
    yield tmp_path
    _forget_schemas()


def _forget_schemas() -> None:
    codec._readers.cache_clear()
    codec._writers.cache_clear()
    codec._writer.cache_clear()
    codec._item_encoder.cache_clear()


def _alter(path: Path, drop: str) -> None:
    schema = json.loads(path.read_text())
    schema["fields"] = [field for field in schema["fields"] if field["name"] != drop]
    path.write_text(evolution.schema_source(schema))


def test_a_new_optional_field_makes_a_new_version_beside_the_old(catalogue_copy: Path) -> None:
    _alter(catalogue_copy / "StepClosed.v1.avsc", drop="kl")
    assert evolution.write() == ["StepClosed.v2.avsc"]
    assert schema_versions("StepClosed") == [1, 2]
    assert "StepClosed.v2" in json.loads((catalogue_copy / "index.json").read_text())


def test_bytes_of_an_older_version_decode_with_the_new_field_absent(catalogue_copy: Path) -> None:
    event = replace(sample(StepClosed, "full"), kl=None)
    _alter(catalogue_copy / "StepClosed.v1.avsc", drop="kl")
    before = encode(event)
    assert evolution.write() == ["StepClosed.v2.avsc"]
    _forget_schemas()
    assert encode(event)[:10] != before[:10]
    assert decode(before) == decode(encode(event)) == event


def test_a_new_required_field_is_refused_before_anything_is_written(catalogue_copy: Path) -> None:
    _alter(catalogue_copy / "StepClosed.v1.avsc", drop="measured")
    with pytest.raises(SchemaError, match=r"StepClosed: v2 cannot read v1.*measured"):
        evolution.write()
    assert schema_versions("StepClosed") == [1]
