"""An archive against heads that were kept elsewhere, or that a key has signed."""

from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from schemas.topics import Topic
from streams.archive.cut import Cut
from streams.archive.heads import HEADS, Heads, is_signed_by
from streams.archive.manifest import MANIFEST, chain_of
from streams.audit.verify.fault import Fault, FaultKind
from streams.audit.verify.manifest import PartitionPlace, PartitionScan

_LAST = len(Topic)


def archive_fault(kind: FaultKind, file: str, meaning: str) -> Fault:
    """A fault of the archive as a whole."""
    return Fault((_LAST, 0, 0), file, kind, None, None, meaning)


def compare_heads(heads: Heads, scans: list[PartitionScan], cuts: tuple[Cut, ...], run: str | None) -> Iterator[Fault]:
    """What was changed or cut off below the heads. An archive that has grown since agrees."""
    if run is not None and heads.run != run:
        yield archive_fault(FaultKind.HEAD, "", f"the heads are those of the run {heads.run[:80]!r}")
        return
    by_place = {(scan.place.topic.value, scan.place.partition): scan for scan in scans}
    for head in heads.heads:
        scan = by_place.get((head.topic, head.partition))
        if scan is None:
            name = f"{head.topic[:40]}/{head.partition}"
            yield archive_fault(FaultKind.HEAD, "", f"the archive lacks the partition {name}, which the heads know")
            continue
        if scan.end < head.next_offset:
            meaning = f"the archive ends before offset {scan.end}, and the heads were taken at {head.next_offset}"
            yield scan.place.fault(FaultKind.HEAD, MANIFEST, scan.end, meaning, head.next_offset - 1)
        elif chain_of(scan.entries[: head.segments]) != head.chain:
            meaning = "the chain up to here is not the one that the heads were taken of: it was sealed anew"
            yield scan.place.fault(FaultKind.HEAD, MANIFEST, 0, meaning, max(head.next_offset - 1, 0))
    if len(cuts) < heads.cuts or (heads.cuts and cuts[heads.cuts - 1].sha256 != heads.cuts_chain):
        yield archive_fault(FaultKind.HEAD, "cuts.jsonl", "its cuts are not those that the heads know")


def compare_signature(heads: Heads, key: Ed25519PublicKey) -> Iterator[Fault]:
    """Whether the key signed the heads."""
    if not is_signed_by(heads, key):
        yield archive_fault(FaultKind.SIGNATURE, HEADS, "the heads are not signed with this key")


def uncovered(heads: Heads, scans: list[PartitionScan]) -> Iterator[Fault]:
    """What lies behind the signed heads: anyone may have written it."""
    covered = {(head.topic, head.partition): head.next_offset for head in heads.heads}
    for scan in scans:
        signed = covered.get((scan.place.topic.value, scan.place.partition), 0)
        if scan.end > signed:
            meaning = f"the signed heads end before offset {signed}: nothing vouches for what follows"
            yield scan.place.fault(FaultKind.SIGNATURE, MANIFEST, signed, meaning, scan.end - 1)


def places_of(archive: Path, partitions: int) -> list[PartitionPlace]:
    """Every partition that an archive of N partitions has."""
    return [
        PartitionPlace(archive, topic, number)
        for topic in Topic
        for number in range(partitions if topic.by_task else 1)
    ]
