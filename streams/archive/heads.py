"""The heads of an archive's chains: a few hundred bytes that, kept elsewhere, show any later change of what they cover.

Whoever can write to an archive can also write its manifests anew, so an archive vouches for itself only as far as
nobody has done that. Its heads, kept where that person cannot write, or signed with a key that they lack, show it.
"""

import base64
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from schemas.rules import canonical_json
from schemas.topics import Topic
from streams.archive.cut import cuts_chain, read_cuts
from streams.archive.durable import replace_durably
from streams.archive.errors import ArchiveError
from streams.archive.manifest import read_manifest
from streams.archive.partition import partition_folder
from streams.archive.read import archived_partitions

HEADS = "heads.json"
FORMAT = 1
_MOST_BYTES = 4 * 1024 * 1024
_MOST = 2**63


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a partition's chain. chain: sha256 over its first `segments` entries, up to before next_offset."""

    topic: str
    partition: int
    segments: int
    next_offset: int
    chain: str


@dataclass(frozen=True, slots=True)
class Heads:
    """Every head of an archive. cuts, cuts_chain: how many cuts it records, and the sha256 of the newest.

    signature: base64 of the Ed25519 signature over the canonical JSON of all else.
    public_key: base64 of the raw key that is said to fit it, for information alone. Both empty where it is not signed.
    """

    run: str
    heads: tuple[Head, ...]
    cuts: int
    cuts_chain: str
    public_key: str = ""
    signature: str = ""

    def signed_content(self) -> bytes:
        """What the signature covers."""
        content = {**asdict(self), "format": FORMAT}
        del content["signature"]
        return canonical_json(content).encode()

    def as_json(self) -> dict[str, Any]:
        """The document that `parse_heads` reads."""
        return {"format": FORMAT, **asdict(self)}


def take_heads(archive: Path, run: str) -> Heads:
    """The heads of an archive now, unsigned. Raises ArchiveError where a chain does not hold."""
    if not archive.is_dir():
        raise ArchiveError(f"there is no archive at {archive}")
    heads = [_head(archive, topic, number) for topic in Topic for number in archived_partitions(archive, topic)]
    cuts = read_cuts(archive)
    return Heads(run, tuple(heads), len(cuts), cuts_chain(cuts))


def _head(archive: Path, topic: Topic, partition: int) -> Head:
    manifest = read_manifest(partition_folder(archive, topic, partition))
    return Head(topic.value, partition, len(manifest.segments), manifest.next_offset or 0, manifest.chain)


def sign(heads: Heads, key: Ed25519PrivateKey) -> Heads:
    """The heads with their signature. Equal heads and keys give equal bytes."""
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    named = Heads(heads.run, heads.heads, heads.cuts, heads.cuts_chain, base64.b64encode(public).decode())
    signature = base64.b64encode(key.sign(named.signed_content())).decode()
    return Heads(named.run, named.heads, named.cuts, named.cuts_chain, named.public_key, signature)


def is_signed_by(heads: Heads, key: Ed25519PublicKey) -> bool:
    """Whether the signature is the key's, over exactly these heads."""
    try:
        key.verify(base64.b64decode(heads.signature, validate=True), heads.signed_content())
    except (InvalidSignature, ValueError):
        return False
    return True


def parse_heads(path: Path) -> Heads:
    """The heads in a file. Raises ArchiveError where it holds none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("too large")
        document = json.loads(path.read_bytes())
        if document.pop("format") != FORMAT:
            raise ValueError("another format")
        heads = tuple([Head(**head) for head in document.pop("heads")])
        parsed = Heads(heads=heads, **document)
        canonical_json(asdict(parsed))
        if not _is_possible(parsed):
            raise ValueError("impossible values")
    except OSError as error:
        raise ArchiveError(f"the heads in {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ArchiveError(f"{path} holds no heads of an archive") from error
    return parsed


def _is_possible(heads: Heads) -> bool:
    """Whether what was read are texts and numbers of what there may be."""
    texts, numbers = [heads.run, heads.cuts_chain, heads.public_key, heads.signature], [heads.cuts]
    for head in heads.heads:
        texts += [head.topic, head.chain]
        numbers += [head.partition, head.segments, head.next_offset]
    return all(isinstance(text, str) for text in texts) and all(
        type(number) is int and 0 <= number < _MOST for number in numbers
    )


def write_heads(heads: Heads, path: Path) -> None:
    """Writes the document; the file appears complete and durable."""
    replace_durably(path, (json.dumps(heads.as_json(), indent=1) + "\n").encode())


def generate_key(path: Path) -> Path:
    """Writes a new private key to `path`, which must not exist, readable by its owner alone; the public key beside it.

    The path of the public key. Raises ArchiveError.
    """
    key = Ed25519PrivateKey.generate()
    public = path.with_name(path.name + ".pub")
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        for target, data, mode in ((path, private, 0o600), (public, shown, 0o644)):
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as out:
                out.write(data)
    except OSError as error:
        raise ArchiveError(f"the key cannot be written to {error.filename}: {error.strerror}") from error
    return public


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 key in PEM, without a passphrase. Raises ArchiveError."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise ArchiveError(f"the key {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ArchiveError(f"{path} holds no private key in PEM without a passphrase") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ArchiveError(f"the key {path} is no Ed25519 key")
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """An Ed25519 public key in PEM. Raises ArchiveError."""
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise ArchiveError(f"the key {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ArchiveError(f"{path} holds no public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise ArchiveError(f"the key {path} is no Ed25519 key")
    return key
