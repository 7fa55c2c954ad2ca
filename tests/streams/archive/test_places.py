"""Records found by what stands in them are those that a reading of every record finds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.reader import LogRecord
from schemas.topics import Topic
from streams.archive.container import open_container
from streams.archive.errors import ArchiveError
from streams.archive.partition import PartitionArchive
from streams.archive.read import read_partition, read_partition_at
from streams.archive.segment import encode_segment

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
WANTED = b"\x08task"
some = st.one_of(
    st.none(),
    st.binary(max_size=200),
    st.binary(max_size=20).map(lambda data: data + WANTED),
    st.binary(min_size=9000, max_size=9100),
)
records = st.lists(
    st.tuples(st.integers(0, 2**40), some, some, st.lists(st.tuples(st.text(max_size=3), some), max_size=2)),
    min_size=1,
    max_size=12,
)


def listed(rows: list[Row]) -> list[LogRecord]:
    return [LogRecord("t", 0, 5 + n, at, key, value, tuple(pairs)) for n, (at, key, value, pairs) in enumerate(rows)]


def places(data: bytes) -> list[int]:
    return [at for at in range(len(data)) if data.startswith(WANTED, at)]


@pytest.mark.slow
@given(records)
def test_the_rows_with_a_place_are_found_and_numbered(rows: list[Row]) -> None:
    container = open_container(encode_segment(listed(rows)))
    every = [row for block in container.blocks() for row in block]
    found = list(container.rows_at(places))
    assert all(row == every[number] for number, row in found)
    numbers = [number for number, _ in found]
    assert numbers == sorted(set(numbers))
    assert {number for number, row in enumerate(every) if places(row.value or b"")} <= set(numbers)
    assert [row for _, row in container.rows_at(lambda data: range(len(data)))] == every


def test_records_of_a_partition_are_found_across_segments(tmp_path: Path) -> None:
    archive = PartitionArchive(tmp_path, Topic.ROLLOUTS, 0)
    for offset in range(200):
        value = b"about " + (WANTED if offset % 7 == 3 else b"nothing") + b"x" * 3000
        archive.add(LogRecord("rods.rollouts", 0, offset, 0, b"key", value, ()), 0.0)
        if offset % 60 == 59:
            archive.seal()
    archive.seal()
    expected = [one for one in read_partition(tmp_path, Topic.ROLLOUTS, 0) if WANTED in (one.value or b"")]
    assert len(expected) == 29
    assert list(read_partition_at(tmp_path, Topic.ROLLOUTS, 0, places)) == expected


def test_a_search_reads_no_segment_that_was_changed(tmp_path: Path) -> None:
    archive = PartitionArchive(tmp_path, Topic.POOL, 0)
    archive.add(LogRecord("rods.pool", 0, 0, 0, b"key", b"value", ()), 0.0)
    archive.seal()
    segment = next((tmp_path / "pool").glob("*/*.avro"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    with pytest.raises(ArchiveError, match="another sha256"):
        list(read_partition_at(tmp_path, Topic.POOL, 0, places))
