from dataclasses import fields
from typing import Any

import pytest

from schemas.catalogue import EVENT_TYPES
from schemas.codec import decode, encode, kind_of_frame, schema_versions
from tests.golden import events

FRAMES = events.recorded()
NEWEST = [(event_type, filling) for event_type in EVENT_TYPES for filling in events.SAMPLES]


def test_every_version_of_every_schema_has_golden_bytes() -> None:
    versions = [(kind.KIND, version) for kind in EVENT_TYPES for version in schema_versions(kind.KIND)]
    assert set(FRAMES) == {f"{kind}.v{version}/{name}" for kind, version in versions for name in events.SAMPLES}


@pytest.mark.parametrize(("event_type", "filling"), NEWEST)
def test_the_newest_version_still_gives_its_golden_bytes(event_type: type[Any], filling: str) -> None:
    newest = schema_versions(event_type.KIND)[-1]
    expected = bytes.fromhex(FRAMES[f"{event_type.KIND}.v{newest}/{filling}"])
    assert encode(events.sample(event_type, filling)) == expected
    assert decode(expected) == events.sample(event_type, filling)


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_golden_bytes_of_every_version_decode_to_the_newest_type(name: str) -> None:
    frame = bytes.fromhex(FRAMES[name])
    event = decode(frame)
    assert event.KIND == name.partition(".")[0] == kind_of_frame(frame)


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_full_and_bare_samples_differ_in_every_field(event_type: type[Any]) -> None:
    full, bare = (events.sample(event_type, filling) for filling in events.SAMPLES)
    assert all(getattr(full, field.name) != getattr(bare, field.name) for field in fields(event_type))
