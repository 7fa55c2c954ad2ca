import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import fastavro
import pytest

from eventlog.reader import LogRecord
from schemas.rules import canonical_json
from schemas.topics import Topic
from streams.archive.errors import ArchiveConflictError, ArchiveError
from streams.archive.manifest import MANIFEST, entry_of, read_manifest, take_up
from streams.archive.partition import PartitionArchive, partition_folder
from streams.archive.read import read_archive
from streams.archive.segment import Segment, encode_segment, read_segment, segment_name
from tests.archives import seal


def _record(offset: int, value: bytes | None = b"value") -> LogRecord:
    return LogRecord("rods.pool", 0, offset, 1_700_000_000_000 + offset, b"key", value, (("h", b"1"), ("n", None)))


def _sealed(folder: Path, offsets: Iterable[int], size: int | None = None) -> PartitionArchive:
    return seal(folder, Topic.POOL, 0, map(_record, offsets), size)


def _offsets(folder: Path) -> list[int]:
    return [record.offset for record in read_archive(folder, Topic.POOL)]


def test_records_come_back_as_they_went_in(tmp_path: Path) -> None:
    records = [_record(0), _record(1, None), _record(2, bytes(range(256)))]
    seal(tmp_path, Topic.POOL, 0, records)
    assert list(read_archive(tmp_path, Topic.POOL)) == records


def test_equal_records_give_equal_bytes() -> None:
    assert encode_segment([_record(4), _record(5)]) == encode_segment([_record(4), _record(5)])


def test_segments_are_named_by_first_and_last_offset_and_chained(tmp_path: Path) -> None:
    _sealed(tmp_path, range(4), size=3)
    first, second = read_manifest(partition_folder(tmp_path, Topic.POOL, 0)).segments
    assert first.file == "00000000000000000000-00000000000000000002.avro"
    assert (second.first, second.last, second.records) == (3, 3, 1)
    assert (first.previous, second.previous) == ("", first.sha256)


def test_of_two_archivers_the_second_to_seal_loses_and_changes_nothing(tmp_path: Path) -> None:
    _sealed(tmp_path, range(2))
    one, other = PartitionArchive(tmp_path, Topic.POOL, 0), PartitionArchive(tmp_path, Topic.POOL, 0)
    for offset in (2, 3):
        one.add(_record(offset), 0.0)
    other.add(_record(2), 0.0)
    one.seal()
    with pytest.raises(ArchiveConflictError):
        other.seal()
    assert _offsets(tmp_path) == [0, 1, 2, 3]


def test_a_cut_off_line_and_stray_files_are_no_part_of_the_archive(tmp_path: Path) -> None:
    _sealed(tmp_path, range(2))
    folder = partition_folder(tmp_path, Topic.POOL, 0)
    with (folder / MANIFEST).open("ab") as manifest:
        manifest.write(b'{"file": "000')
    (folder / "00000000000000000002-00000000000000000009.avro").write_bytes(b"never entered")
    (folder / ".123.tmp").write_bytes(b"never sealed")
    _sealed(tmp_path, range(2, 5))
    assert _offsets(tmp_path) == [0, 1, 2, 3, 4]
    assert len(take_up(folder).segments) == 2
    assert len(list(folder.glob("*.avro"))) == 2
    assert not (folder / ".123.tmp").exists()


def test_records_that_jump_are_not_archived(tmp_path: Path) -> None:
    archive = _sealed(tmp_path, range(2))
    with pytest.raises(ArchiveError, match="jumps to offset 3 from 2"):
        archive.add(_record(3), 0.0)


def test_an_archive_may_begin_where_retention_left_the_log(tmp_path: Path) -> None:
    _sealed(tmp_path, range(40, 42))
    assert _offsets(tmp_path) == [40, 41]


def test_age_and_size_make_a_partition_due(tmp_path: Path) -> None:
    archive = PartitionArchive(tmp_path, Topic.POOL, 0)
    assert not archive.due(99.0, 2.0, 1)
    archive.add(_record(0), 10.0)
    assert not archive.due(11.0, 2.0, 1_000_000)
    assert archive.due(12.0, 2.0, 1_000_000)
    assert archive.due(10.0, 2.0, 10)


def test_a_changed_byte_is_found_and_its_file_and_offset_named(tmp_path: Path) -> None:
    _sealed(tmp_path, range(4), size=2)
    path = sorted(partition_folder(tmp_path, Topic.POOL, 0).glob("*.avro"))[1]
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ArchiveError, match=rf"{path.name} that begins at offset 2 has another sha256"):
        _offsets(tmp_path)


@pytest.mark.parametrize("change", ["previous", "first", "file", "extra"])
def test_a_manifest_whose_chain_breaks_is_refused(tmp_path: Path, change: str) -> None:
    _sealed(tmp_path, range(4), size=2)
    path = partition_folder(tmp_path, Topic.POOL, 0) / MANIFEST
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1] |= {"previous": "0" * 64} if change == "previous" else {}
    lines[1] |= {"first": 3} if change == "first" else {}
    lines[1] |= {"file": "../../elsewhere.avro"} if change == "file" else {}
    lines[1] |= {"command": "rm"} if change == "extra" else {}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ArchiveError):
        _offsets(tmp_path)


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"hello" * 100, "other schema", "other partition", "cut"])
def test_a_file_that_its_manifest_vouches_for_is_still_not_trusted(tmp_path: Path, data: bytes | str) -> None:
    if data == "other schema":
        out = io.BytesIO()
        fastavro.writer(out, {"type": "record", "name": "X", "fields": [{"name": "offset", "type": "string"}]}, [])
        data = out.getvalue()
    elif data == "other partition":
        data = encode_segment([_record(0)._replace(partition=7)])
    elif data == "cut":
        data = encode_segment([_record(0)])[:-17]
    assert isinstance(data, bytes)
    path = tmp_path / "segment.avro"
    path.write_bytes(data)
    segment = Segment(path.name, 0, 0, len(data), hashlib.sha256(data).hexdigest(), "")
    with pytest.raises(ArchiveError, match=r"segment\.avro"):
        list(read_segment(path, segment, 0))


def test_a_missing_archive_is_said(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="no archive"):
        list(read_archive(tmp_path / "none", Topic.POOL))


@pytest.mark.parametrize(
    "wrong", [{"size": "1"}, {"size": None}, {"size": True}, {"sha256": 5}, {"previous": None}, {"first": False}]
)
def test_an_entry_whose_values_are_of_another_type_is_none(wrong: dict[str, object]) -> None:
    entry = asdict(Segment(segment_name(0, 1), 0, 1, 10, "a" * 64, ""))
    entry_of(canonical_json(entry).encode())
    with pytest.raises(ValueError, match=r"not an entry|impossible values"):
        entry_of(canonical_json({**entry, **wrong}).encode())
