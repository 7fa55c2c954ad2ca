"""Is an archive whole, and is every record in it an event that could be?

    manifests and files -> segments, in parallel, every record decoded -> trajectories against results
        -> cuts, what was set aside, schema texts, heads -> faults in order

What this can show and what only heads kept elsewhere can show is in docs/audit.md.
"""

import hashlib
import json
import multiprocessing
from array import array
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from eventlog.reader import LogRecord
from schemas.codec import AVRO_FOLDER
from schemas.topics import Topic
from streams.archive.cut import CUTS, Cut, cut_of, place_name
from streams.archive.errors import ArchiveError
from streams.archive.heads import HEADS, Heads, parse_heads
from streams.archive.read import archived_partitions, read_partition
from streams.archive.segment import Segment
from streams.audit.errors import AuditError
from streams.audit.load.source import ArchiveSource
from streams.audit.verify.fault import Fault, FaultKind
from streams.audit.verify.heads import archive_fault, compare_heads, compare_signature, places_of, uncovered
from streams.audit.verify.identity import Expected
from streams.audit.verify.known import Named, named, refused
from streams.audit.verify.manifest import PartitionPlace, PartitionScan, scan_partition
from streams.audit.verify.payload import PayloadCounts, compare_payloads
from streams.audit.verify.record import Counts
from streams.audit.verify.segment import SegmentFindings, SegmentJob, verify_segment
from streams.audit.verify.set_aside import SetAsideCount, verify_set_aside

_PARALLEL_FROM_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 2 * 1024 * 1024
_RECORD_BYTES = 200
Progress = Callable[[int, int], None]
"""Takes the bytes of segments verified so far, and in all."""


@dataclass(frozen=True, slots=True)
class Witness:
    """What is known from elsewhere. heads: kept apart from the archive; key: of whoever signed heads."""

    heads: Heads | None = None
    key: Ed25519PublicKey | None = None


@dataclass(slots=True)
class Verification:
    """What an archive came to. repeated: events told more than once, which delivery allows. refused: poison that the
    dead letters tell of. trajectories: those that results name, and that the archive holds. set_aside: by returns to a
    cut, oldest first. run: empty where the log does not say. chained: whether its bytes are held to a chain, as those
    of an archive are."""

    run: str = ""
    partitions: int = 0
    segments: int = 0
    records: int = 0
    attempts: int = 0
    bytes: int = 0
    repeated: int = 0
    refused: int = 0
    trajectories: PayloadCounts = field(default_factory=PayloadCounts)
    cuts: int = 0
    set_aside: tuple[SetAsideCount, ...] = ()
    heads: str = "none"
    chained: bool = True
    faults: list[Fault] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.faults


def verify_archive(
    archive: Path, workers: int = 1, witness: Witness | None = None, progress: Progress | None = None
) -> Verification:
    """Reads the whole archive. Its faults come in the order of topics, partitions and offsets. Raises AuditError where
    there is no archive at all."""
    if not archive.is_dir():
        raise AuditError(f"there is no archive at {archive}")
    result = Verification()
    run, partitions = run_of(archive)
    places = _places(archive, partitions, result.faults)
    scans = [scan_partition(place) for place in places]
    result.run, result.partitions = run or "", len(scans)
    expected = Expected(Topic.EPOCHS, 0, run, partitions)
    _read_segments(archive, scans, expected, workers, result, progress)
    cuts = _cuts(archive, scans, result)
    result.set_aside, faults = verify_set_aside(archive, scans, expected, partial(_verified, workers=workers))
    result.faults += faults
    result.faults += _schema_faults(archive)
    _compare(archive, scans, cuts, run, witness or Witness(), result)
    result.faults.sort()
    return result


def run_of(archive: Path) -> Named:
    """The run and its N, as the first events of the log say; None where they cannot be read."""
    return named(ArchiveSource(archive))


def _places(archive: Path, partitions: int | None, faults: list[Fault]) -> list[PartitionPlace]:
    found = {(topic, number) for topic in Topic for number in archived_partitions(archive, topic)}
    if partitions is None:
        partitions = 1 + max((number for topic, number in found if topic.by_task), default=0)
    places = places_of(archive, partitions)
    known = {(place.topic, place.partition) for place in places}
    for topic, number in sorted(found - known):
        place = PartitionPlace(archive, topic, number)
        faults.append(place.fault(FaultKind.STRAY, "", None, "the run has no such partition"))
    return places


def _read_segments(
    archive: Path,
    scans: list[PartitionScan],
    expected: Expected,
    workers: int,
    result: Verification,
    progress: Progress | None,
) -> None:
    known = refused(ArchiveSource(archive))
    jobs = []
    for scan in scans:
        result.faults += scan.faults
        place = scan.place
        wanted = Expected(place.topic, place.partition, expected.run, expected.partitions)
        poison = known.get((place.topic, place.partition), frozenset())
        jobs += [SegmentJob(place, segment, wanted, poison) for segment in scan.present]
    jobs.sort(key=_cost, reverse=True)
    total = sum(job.segment.size for job in jobs)
    ids = array("Q")
    payloads: dict[PartitionPlace, list[tuple[Segment, bytes]]] = {}
    for job, found in zip(jobs, _verified(jobs, workers), strict=True):
        result.faults += found.faults
        result.bytes += found.size
        add_counts(result, found.counts)
        ids += found.counts.ids
        if found.counts.payloads:
            payloads.setdefault(job.place, []).append((job.segment, found.counts.payloads))
        if progress:
            progress(result.bytes, total)
    result.segments = len(jobs)
    result.repeated = repeated(ids)
    for place, found_there in payloads.items():
        result.faults += _payload_faults(archive, place, found_there, result.trajectories)


def add_counts(result: Verification, counts: Counts) -> None:
    """Adds what some records came to."""
    result.records += counts.records
    result.attempts += counts.attempts
    result.refused += counts.refused


def repeated(ids: "array[int]") -> int:
    """How many of these are another one's equal."""
    return len(ids) - len(np.unique(np.frombuffer(ids, dtype=np.uint64))) if ids else 0


def _payload_faults(
    archive: Path, place: PartitionPlace, found: list[tuple[Segment, bytes]], counts: PayloadCounts
) -> Iterator[Fault]:
    """Trajectories of a partition that are not those its results name, as far as the results can be read."""
    results = _readable(read_partition(archive, Topic.ROLLOUTS, place.partition))
    for mismatch in compare_payloads(b"".join([payloads for _, payloads in found]), results, counts):
        held = (segment.file for segment, _ in found if segment.first <= mismatch.offset <= segment.last)
        yield place.fault(FaultKind.TRAJECTORY, next(held, ""), mismatch.offset, mismatch.meaning)


def _readable(records: Iterator[LogRecord]) -> Iterator[LogRecord]:
    with suppress(ArchiveError):
        yield from records


def _verified(jobs: list[SegmentJob], workers: int) -> Iterator[SegmentFindings]:
    """In the order of the jobs."""
    if workers <= 1 or sum(job.segment.size for job in jobs) < _PARALLEL_FROM_BYTES:
        yield from map(verify_segment, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for findings in pool.map(_verify_chunk, _chunks(jobs)):
            yield from findings


def _cost(job: SegmentJob) -> int:
    """What a segment takes, in bytes: each of its records as much as some hundred. The dearest go first, so that no
    process is left with one at the end."""
    return job.segment.size + _RECORD_BYTES * job.segment.records


def _verify_chunk(jobs: list[SegmentJob]) -> list[SegmentFindings]:
    return [verify_segment(job) for job in jobs]


def _chunks(jobs: Iterable[SegmentJob]) -> Iterator[list[SegmentJob]]:
    """Jobs in order, some bytes at a time, so that small segments are not sent one by one."""
    chunk: list[SegmentJob] = []
    for job in jobs:
        chunk.append(job)
        if sum(waiting.segment.size for waiting in chunk) >= _CHUNK_BYTES or len(chunk) >= 64:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _cuts(archive: Path, scans: list[PartitionScan], result: Verification) -> tuple[Cut, ...]:
    """The cuts that hold, and the faults of those that do not."""
    path = archive / CUTS
    *lines, tail = path.read_bytes().split(b"\n") if path.is_file() else [b""]
    cuts: list[Cut] = []
    ends = {place_name(scan.place.topic, scan.place.partition): scan for scan in scans}
    for number, line in enumerate(lines, 1):
        try:
            cut = cut_of(line)
            if cut.number != number or cut.previous != (cuts[-1].sha256 if cuts else ""):
                raise ValueError("it does not follow from the line before")
        except ValueError as error:
            result.faults.append(archive_fault(FaultKind.CUT, CUTS, f"line {number} is no cut: {error}"))
            break
        cuts.append(cut)
    if tail:
        result.faults.append(archive_fault(FaultKind.TORN, CUTS, "the file ends in a torn line"))
    if cuts:
        result.faults += _cut_off(cuts[-1], ends)
    result.cuts = len(cuts)
    return tuple(cuts)


def _cut_off(cut: Cut, scans: dict[str, PartitionScan]) -> Iterator[Fault]:
    for name, end in cut.ends.items():
        scan = scans.get(name)
        if scan is None:
            yield archive_fault(FaultKind.CUT, CUTS, f"cut {cut.number} names {name[:40]}, which the archive lacks")
        elif scan.end < end:
            meaning = f"the archive ends before offset {scan.end}, and cut {cut.number} was recorded at {end}"
            yield scan.place.fault(FaultKind.CUT, "manifest.jsonl", scan.end, meaning, end - 1)


def _schema_faults(archive: Path) -> Iterator[Fault]:
    """Whether the schema texts beside the records are those of the index beside them, and ours where we have them."""
    folder = archive / "schemas"
    try:
        index: dict[str, Any] = json.loads((folder / "index.json").read_bytes())
        recorded = {f"{name}.avsc": str(entry["sha256"]) for name, entry in index.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        yield archive_fault(FaultKind.SCHEMA_TEXT, "schemas/index.json", "the index of schemas cannot be read")
        return
    ours = {path.name: path.read_bytes() for path in AVRO_FOLDER.iterdir()}
    present = {path.name: path for path in folder.iterdir() if path.suffix == ".avsc" and path.is_file()}
    for name in sorted(recorded.keys() | present.keys()):
        wrong = _schema_fault(recorded.get(name), present.get(name), ours.get(name))
        if wrong:
            yield archive_fault(FaultKind.SCHEMA_TEXT, f"schemas/{name}", wrong)
    shared = {name: index[name.removesuffix(".avsc")] for name in recorded if name in ours}
    known = json.loads(ours["index.json"])
    for name, entry in sorted(shared.items()):
        if entry != known[name.removesuffix(".avsc")]:
            yield archive_fault(FaultKind.SCHEMA_TEXT, "schemas/index.json", f"its entry of {name} is not ours")


def _schema_fault(recorded: str | None, path: Path | None, ours: bytes | None) -> str | None:
    if recorded is None:
        return "the index of schemas has no entry of this text"
    if path is None:
        return "the schema's text is missing"
    text = path.read_bytes()
    if ours is not None and text != ours:
        return "the schema's text is not the one that this version of rods reads by"
    same = hashlib.sha256(text).hexdigest() == recorded
    return None if same else "the schema's text has another sha256 than the index says"


def _compare(
    archive: Path,
    scans: list[PartitionScan],
    cuts: tuple[Cut, ...],
    run: str | None,
    witness: Witness,
    result: Verification,
) -> None:
    heads = witness.heads
    if heads is None and witness.key is not None:
        try:
            heads = parse_heads(archive / HEADS)
        except ArchiveError as error:
            result.faults.append(archive_fault(FaultKind.SIGNATURE, HEADS, str(error)))
    if heads is None:
        return
    result.heads = "signed" if witness.key else "given"
    if witness.key is not None:
        result.faults += compare_signature(heads, witness.key)
        result.faults += uncovered(heads, scans)
    result.faults += compare_heads(heads, scans, cuts, run)
