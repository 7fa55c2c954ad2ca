"""Are the trajectories of the log those that the results name?

A result names the sha256 of each attempt's trajectory; the trajectory itself travels on a topic of its own, and may be
gone, since it is kept shortest. What is there must be what was named.

    trajectories, as they are verified -> packed keys and digests -> against the results of the same partition
"""

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from eventlog.reader import LogRecord
from schemas.codec import decode_plain
from schemas.errors import SchemaError
from schemas.identity import trajectory_digest
from schemas.rollouts import RolloutFinished
from streams.audit.verify.batch import Batch

_ROW = struct.Struct("<16s32sq")
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Mismatch(NamedTuple):
    """A trajectory that is not the one its result names. offset: its own."""

    offset: int
    meaning: str


@dataclass(slots=True)
class PayloadCounts:
    """named: trajectories that results name. present: those of them that the log holds, each compared."""

    named: int = 0
    present: int = 0


def packed(batch: Batch, offsets: Iterable[int]) -> Iterator[bytes]:
    """What each trajectory comes to, in few bytes; its lists have equal lengths. offsets: of the records."""
    names = ("group", "execution", "attempt", "token_ids", "logprobs", "loss_mask", "messages")
    rows = zip(offsets, *[batch[name] for name in names], strict=True)
    for offset, group, execution, attempt, token_ids, logprobs, loss_mask, messages in rows:
        digest = trajectory_digest(tuple(token_ids), tuple(logprobs), loss_mask, messages)
        yield _ROW.pack(_key(group, execution, attempt), bytes.fromhex(digest), offset)


def compare_payloads(payloads: bytes, results: Iterable[LogRecord], counts: PayloadCounts) -> Iterator[Mismatch]:
    """The trajectories of a partition against its results. Adds to the counts."""
    named = _named(results)
    present = set()
    for key, digest, offset in _ROW.iter_unpack(payloads):
        found = named.get(key)
        if found is None:
            continue
        present.add(key)
        if found[0] != digest:
            meaning = (
                f"TrajectoryRecorded: its content has the sha256 {digest.hex()}, and the result at offset {found[1]} "
                f"of rollouts names {found[0].hex()}"
            )
            yield Mismatch(offset, meaning)
    counts.named += len(named)
    counts.present += len(present)


def _named(results: Iterable[LogRecord]) -> dict[bytes, tuple[bytes, int]]:
    """By group, execution and attempt: the digest that a result names, and the result's offset."""
    named: dict[bytes, tuple[bytes, int]] = {}
    for record in results:
        try:
            kind, _, result = decode_plain(record.value or b"")
        except SchemaError:
            continue
        if kind != RolloutFinished.KIND:
            continue
        for attempt, slot in enumerate(result["slots"]):
            if _DIGEST.fullmatch(slot["trajectory"]):
                key = _key(result["group"], result["execution"], attempt)
                named.setdefault(key, (bytes.fromhex(slot["trajectory"]), record.offset))
    return named


def _key(group: str, execution: str, attempt: int) -> bytes:
    text = "".join([f"{len(part)}:{part}" for part in (group, execution, str(attempt))])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
