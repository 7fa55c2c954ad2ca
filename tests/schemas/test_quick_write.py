from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.codec import decode, encode, encode_like
from schemas.errors import SchemaError
from schemas.quick_write import BODIES
from schemas.rollouts import TaskMeasured
from schemas.seals import PartitionSealed, SealedGroup
from tests.golden.events import sample
from tests.schemas.strategies import values

TYPES = (TaskMeasured, PartitionSealed)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=64, max_size=64) | st.just("a" * 64)


def test_there_is_a_body_for_each_of_these_types_and_no_other() -> None:
    assert set(BODIES) == {event_type.KIND for event_type in TYPES}


@pytest.mark.parametrize("event_type", TYPES)
def test_the_bytes_are_those_of_fastavro_for_the_newest_schema(event_type: type[Any]) -> None:
    @settings(max_examples=150, deadline=None)
    @given(values(event_type))
    def same(event: Any) -> None:
        frame = encode(event)
        assert frame == encode_like(event, frame) and decode(frame) == event

    same()


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS | st.just("\x7f" * 64) | st.text("ab", max_size=64), max_size=4), values(SealedGroup))
def test_digests_have_the_bytes_of_any_other_texts(texts: list[str], group: SealedGroup) -> None:
    seal = replace(sample(PartitionSealed, "full"), groups=(replace(group, trajectories=tuple(texts)),))
    frame = encode(seal)
    assert frame == encode_like(seal, frame)


@pytest.mark.parametrize(
    "wrong",
    [
        {"live": 2**63},
        {"live": None},
        {"task": 5},
        {"zone": None},
        {"task": "\ud800"},
        {"mean": "x"},
        {"envelope": None},
    ],
)
def test_a_value_the_schema_cannot_hold_is_a_schema_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="TaskMeasured cannot be encoded"):
        encode(replace(sample(TaskMeasured, "full"), **wrong))
