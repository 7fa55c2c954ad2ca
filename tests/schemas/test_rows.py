"""The compiled reader gives what the codec gives, or leaves a body to the codec."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from schemas.catalogue import BY_KIND
from schemas.codec import HEADER_BYTES, decode_plain, kind_of_frame, schema_text, schema_versions
from schemas.errors import SchemaError
from schemas.rows import RowReader, Rows, long_at

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "events.json").read_text())
READERS = {kind: RowReader(schema_text(kind, schema_versions(kind)[-1])) for kind in BY_KIND}


def frames() -> list[bytes]:
    """Those of the golden events in the newest version of their kind."""
    found, waiting = [], [GOLDEN]
    while waiting:
        value: Any = waiting.pop()
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and value.startswith("c301"):
            found.append(bytes.fromhex(value))
    return [one for one in found if decode_plain(one).version == schema_versions(decode_plain(one).kind)[-1]]


def compiled(frame: bytes) -> Rows | None:
    """What the reader makes of a frame; None where it leaves it to the codec."""
    reader = READERS[kind_of_frame(frame) or ""]
    rows = reader.empty()
    try:
        return rows if reader.read_frames([frame], HEADER_BYTES, rows) == [len(frame)] else None
    except ValueError:
        return None


def decoded(frame: bytes) -> Rows:
    kind, _, record = decode_plain(frame)
    rows = READERS[kind].empty()
    rows[0].append(tuple(READERS[kind].layout.row(record, rows)))
    return rows


def test_every_kind_is_read_to_the_rows_of_its_plain_record() -> None:
    assert {kind_of_frame(frame) for frame in frames()} == BY_KIND.keys()
    for frame in frames():
        assert compiled(frame) == decoded(frame)


def test_changed_bytes_are_read_as_the_codec_reads_them_or_left_to_it() -> None:
    rng, every, read = Random(1), frames(), 0
    for _ in range(6000):
        changed = bytearray(rng.choice(every))
        position = rng.randrange(HEADER_BYTES, len(changed))
        match rng.randrange(3):
            case 0:
                changed[position] ^= 1 << rng.randrange(8)
            case 1:
                changed[position:position] = bytes([rng.randrange(256)])
            case _:
                del changed[position]
        found = compiled(bytes(changed))
        if found is not None:
            assert repr(found) == repr(decoded(bytes(changed)))
            read += 1
    assert read > 1000


def test_what_is_cut_short_is_left_to_the_codec() -> None:
    for frame in frames():
        for length in range(HEADER_BYTES, len(frame)):
            if compiled(frame[:length]) is not None:
                with pytest.raises(SchemaError):
                    decode_plain(frame[:length])
                pytest.fail("a frame that was cut short was read")


@pytest.mark.parametrize("value", [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 2**40, -(2**40), 2**61])
def test_integers_of_every_length_are_read(value: int) -> None:
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded = bytes([*out, rest])
    assert long_at(b"x" + encoded, 1) == (value, 1 + len(encoded))
    with pytest.raises(ValueError, match="plainly"):
        long_at(b"\xff" * 10 + b"\0", 0)
