import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from schemas.topics import Topic
from streams.archive.cut import record_cut
from streams.archive.errors import ArchiveError
from streams.archive.heads import (
    Heads,
    generate_key,
    is_signed_by,
    parse_heads,
    read_private_key,
    read_public_key,
    sign,
    take_heads,
    write_heads,
)
from tests.archives import record, seal


@pytest.fixture
def heads(tmp_path: Path) -> Heads:
    seal(tmp_path / "archive", Topic.POOL, 0, [record(0), record(1)], size=1)
    record_cut(tmp_path / "archive", "one", {(Topic.POOL, 0): 1})
    return take_heads(tmp_path / "archive", "run")


def test_heads_tell_where_every_chain_stands(heads: Heads) -> None:
    (head,) = heads.heads
    assert (head.topic, head.partition, head.segments, head.next_offset) == ("pool", 0, 2, 2)
    assert (len(head.chain), heads.cuts, len(heads.cuts_chain)) == (64, 1, 64)


def test_the_head_changes_with_any_segment_even_the_first(tmp_path: Path) -> None:
    seal(tmp_path / "one", Topic.POOL, 0, [record(0), record(1)], size=1)
    seal(tmp_path / "other", Topic.POOL, 0, [record(0, b"edited"), record(1)], size=1)
    (one,), (other,) = (take_heads(tmp_path / name, "run").heads for name in ("one", "other"))
    assert one.chain != other.chain


def test_heads_come_back_from_their_file(heads: Heads, tmp_path: Path) -> None:
    write_heads(heads, tmp_path / "heads.json")
    assert parse_heads(tmp_path / "heads.json") == heads
    assert json.loads((tmp_path / "heads.json").read_text())["format"] == 1


def test_a_signature_covers_everything(heads: Heads, tmp_path: Path) -> None:
    public = read_public_key(generate_key(tmp_path / "key"))
    signed = sign(heads, read_private_key(tmp_path / "key"))
    assert is_signed_by(signed, public)
    assert sign(heads, read_private_key(tmp_path / "key")) == signed
    for changed in (
        replace(signed, run="other"),
        replace(signed, cuts=0),
        replace(signed, cuts_chain=""),
        replace(signed, public_key=""),
        replace(signed, heads=()),
        replace(signed, heads=(replace(signed.heads[0], next_offset=3),)),
        replace(signed, signature=""),
        replace(signed, signature="not base64"),
        heads,
    ):
        assert not is_signed_by(changed, public)


def test_a_private_key_is_readable_by_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    public = generate_key(tmp_path / "key")
    assert stat.S_IMODE(os.stat(tmp_path / "key").st_mode) == 0o600
    assert public == tmp_path / "key.pub"
    with pytest.raises(ArchiveError, match="cannot be written"):
        generate_key(tmp_path / "key")


def test_what_is_no_key_is_said_in_one_sentence(tmp_path: Path) -> None:
    generate_key(tmp_path / "key")
    (tmp_path / "text").write_text("hello")
    other = generate_private_key(SECP256R1())
    (tmp_path / "ec").write_bytes(
        other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    for name in ("none", "text", "ec", "key.pub"):
        with pytest.raises(ArchiveError):
            read_private_key(tmp_path / name)
    for name in ("none", "text", "key"):
        with pytest.raises(ArchiveError):
            read_public_key(tmp_path / name)


@pytest.mark.parametrize(
    "wrong",
    [{"segments": 2**70}, {"segments": -1}, {"next_offset": "x"}, {"partition": True}, {"chain": None}, {"topic": 5}],
)
def test_heads_of_impossible_values_are_none(heads: Heads, wrong: dict[str, object], tmp_path: Path) -> None:
    document = heads.as_json()
    document["heads"] = [{**document["heads"][0], **wrong}]
    (tmp_path / "heads.json").write_text(json.dumps(document))
    with pytest.raises(ArchiveError, match="holds no heads of an archive"):
        parse_heads(tmp_path / "heads.json")
