"""Keeping the catalogue: `python -m schemas.evolution` writes the schema of every new or changed event type.

A changed type gets the next version's file; the older ones stay. `index.json` records for each version the fingerprint
and the sha256 of its full text, since the fingerprint ignores defaults and logical types. A change that breaks
FULL_TRANSITIVE compatibility is refused before anything is written.
"""

import hashlib
import json
from typing import Any

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import make_avsc_object

from schemas.catalogue import EVENT_TYPES
from schemas.codec import AVRO_FOLDER, fingerprint, schema_path, schema_text, schema_versions
from schemas.derive import avro_schema
from schemas.errors import SchemaError

INDEX_PATH = AVRO_FOLDER / "index.json"


def schema_source(schema: dict[str, Any]) -> str:
    """The text of a schema file."""
    return json.dumps(schema, indent=2) + "\n"


def index() -> dict[str, dict[str, str]]:
    """``Kind.vN`` to its fingerprint and sha256, computed from the files."""
    entries = {}
    for event_type in EVENT_TYPES:
        for version in schema_versions(event_type.KIND):
            text = schema_path(event_type.KIND, version).read_bytes()
            entries[f"{event_type.KIND}.v{version}"] = {
                "fingerprint": fingerprint(json.loads(text)).hex(),
                "sha256": hashlib.sha256(text).hexdigest(),
            }
    return entries


def incompatibilities(kind: str) -> list[str]:
    """Why versions of a kind cannot read each other, in either direction; empty where all can."""
    return _clashes(kind, [schema_text(kind, version) for version in schema_versions(kind)])


def _clashes(kind: str, schemas: list[dict[str, Any]]) -> list[str]:
    parsed = [make_avsc_object(schema) for schema in schemas]
    checker = ReaderWriterCompatibilityChecker()
    reasons = []
    for reader in range(len(parsed)):
        for writer in range(len(parsed)):
            verdict = checker.get_compatibility(parsed[reader], parsed[writer])
            if verdict.compatibility is not SchemaCompatibilityType.compatible:
                reasons.append(f"{kind}: v{reader + 1} cannot read v{writer + 1}: {sorted(verdict.messages)}")
    return reasons


def write() -> list[str]:
    """Writes what is new; returns the names of the files written. Raises SchemaError for an incompatible change."""
    written = []
    for event_type in EVENT_TYPES:
        versions = schema_versions(event_type.KIND)
        newest = versions[-1] if versions else 0
        if newest and schema_text(event_type.KIND, newest) == avro_schema(event_type, newest):
            continue
        history = [schema_text(event_type.KIND, version) for version in versions]
        reasons = _clashes(event_type.KIND, [*history, avro_schema(event_type, newest + 1)])
        if reasons:
            raise SchemaError(reasons[0])
        path = schema_path(event_type.KIND, newest + 1)
        path.write_text(schema_source(avro_schema(event_type, newest + 1)))
        written.append(path.name)
    INDEX_PATH.write_text(json.dumps(index(), indent=2, sort_keys=True) + "\n")
    return written


if __name__ == "__main__":
    for name in write():
        print(name)
