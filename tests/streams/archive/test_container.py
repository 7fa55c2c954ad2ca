import contextlib
import io

import fastavro
import pytest
from backports import zstd

from streams.archive.container import (
    MAX_BLOCK_BYTES,
    MAX_BLOCK_ROWS,
    MAX_SEGMENT_BYTES,
    PARSED,
    open_container,
)
from streams.archive.errors import ArchiveError

SYNC = b"0123456789abcdef"


def _long(value: int) -> bytes:
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _file(*rows: dict[str, object], codec: str = "zstandard") -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, PARSED, rows, codec=codec, sync_marker=SYNC, metadata={"rods.topic": "rods.pool"})
    return out.getvalue()


def _row(offset: int, value: bytes | None = b"v", headers: int = 0) -> dict[str, object]:
    named = [{"key": "h", "value": b"1"} for _ in range(headers)]
    return {"offset": offset, "timestamp": 5, "key": None, "value": value, "headers": named}


def _with_block(block: bytes, count: int = 1, size: int | None = None) -> bytes:
    """A file whose only block is this."""
    return _file() + _long(count) + _long(len(block) if size is None else size) + block + SYNC


def _rows(data: bytes) -> list[dict[str, object]]:
    rows = [row._asdict() for rows in open_container(data).blocks() for row in rows]
    return [row | {"headers": [{"key": key, "value": value} for key, value in row["headers"]]} for row in rows]


@pytest.mark.parametrize("codec", ["zstandard", "null"])
def test_rows_are_those_of_the_avro_library(codec: str) -> None:
    rows = [_row(number, bytes([number % 256]) * number, number % 3) for number in range(500)]
    data = _file(*rows, codec=codec)
    assert _rows(data) == list(fastavro.reader(io.BytesIO(data))) == rows


def test_a_large_block_is_decoded_to_the_same_rows() -> None:
    rows = [_row(0, b"x" * 3_000_000, 2), _row(1, None)]
    data = _file(*rows)
    assert _rows(data) == list(fastavro.reader(io.BytesIO(data)))


def test_a_block_that_unfolds_beyond_the_limit_is_refused() -> None:
    bomb = zstd.compress(bytes(MAX_BLOCK_BYTES * 8))
    assert len(bomb) < 20_000
    with pytest.raises(ArchiveError, match="decompresses to more than"):
        _rows(_with_block(bomb))


def test_a_block_that_asks_for_a_large_window_is_refused() -> None:
    options: dict[int, int] = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    huge = bytearray(zstd.compress(b"x" * 100, options=options))
    huge[5] = 0xF8  # the window descriptor: 2 TiB
    with pytest.raises(ArchiveError, match="decompress"):
        _rows(_with_block(bytes(huge)))


def test_millions_of_empty_headers_are_counted_before_they_are_held() -> None:
    count = 4_000_000
    row = b"\0\0\0\0" + _long(count) + b"\0\0" * count + b"\0"
    with pytest.raises(ArchiveError, match="headers"):
        _rows(_with_block(zstd.compress(row)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no Avro"),
        (b"Obj\x01", "cut short"),
        (b"Obj\x01" + b"\xff" * 20, "header"),
        (b"Obj\x01\x02" + _long(2**40), "header"),
        (b"Obj\x01\x02" + _long(11) + b"avro.schema" + _long(100_000) + b"[" * 100_000, "header"),
        (b"Obj\x01\x02" + _long(11) + b"avro.schema" + _long(60_000) + b"[" * 60_000 + b"\0" + SYNC, "header"),
        (_file(_row(0), codec="deflate"), "codec"),
        (_file(_row(0))[:-1], "cut short"),
        (_file(_row(0))[:-17], "cut short"),
        (_file(_row(0)) + b"\x02", "cut short"),
        (_with_block(b"not zstd"), "does not decompress"),
        (_with_block(zstd.compress(b"\0\0\0\0\0") + b"more"), "too many"),
        (_with_block(zstd.compress(b"\0\0\0\0\0")[:-2]), "cut short"),
        (_with_block(zstd.compress(b"\0\0\0\0\0"), count=0), "claims 0"),
        (_with_block(zstd.compress(b"\0\0\0\0\0"), count=-1), "claims -1"),
        (_with_block(zstd.compress(b"\0\0\0\0\0"), count=2**60), "claims"),
        (_with_block(zstd.compress(b"\0\0\0\0\0" * (MAX_BLOCK_ROWS + 1)), count=MAX_BLOCK_ROWS + 1), "claims"),
        (_with_block(zstd.compress(b"\0\0\0\0\0" * 2), count=1), "behind its last"),
        (_with_block(zstd.compress(b"\0\0\x02" + _long(2**50) + b"\0"), count=1), "do not decode"),
        (_with_block(b"\0\0\0\0\0", size=-5), "cut short"),
        (_with_block(b"\0\0\0\0\0", size=2**62), "cut short"),
    ],
)
def test_hostile_bytes_are_refused_in_one_sentence(data: bytes, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason):
        _rows(data)


def test_a_file_beyond_the_limit_is_not_parsed() -> None:
    with pytest.raises(ArchiveError, match="allowed"):
        open_container(bytes(MAX_SEGMENT_BYTES + 1))


def test_any_cut_of_a_file_is_refused_or_a_whole_number_of_blocks() -> None:
    data = _file(*[_row(number) for number in range(3)])
    empty = len(_file())
    for length in range(len(data)):
        if length == empty:
            continue
        with pytest.raises(ArchiveError):
            _rows(data[:length])


def test_any_flipped_bit_of_a_block_is_refused_or_gives_other_rows() -> None:
    rows = [_row(number, bytes(20)) for number in range(3)]
    data = _file(*rows, codec="null")
    for position in range(len(_file(codec="null")), len(data)):
        changed = bytearray(data)
        changed[position] ^= 4
        with contextlib.suppress(ArchiveError):
            assert _rows(bytes(changed)) != rows
