"""What returns to a cut have set aside: still whole, and what the archive says of it?

A segment that was set aside keeps its name and its place in the old chain. A return that was cut short is done again
under another number, so what one folder lacks may lie in a later one, or still in the archive.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.topics import Topic
from streams.archive.errors import ArchiveError
from streams.archive.manifest import MANIFEST, chain_of
from streams.archive.segment import Segment
from streams.archive.set_aside import LOG, SET_ASIDE, read_set_aside
from streams.audit.verify.fault import Fault, FaultKind
from streams.audit.verify.heads import archive_fault
from streams.audit.verify.identity import Expected
from streams.audit.verify.manifest import PartitionPlace, PartitionScan, scan_partition
from streams.audit.verify.segment import SegmentFindings, SegmentJob

Verifier = Callable[[list[SegmentJob]], Iterator[SegmentFindings]]


@dataclass(frozen=True, slots=True)
class SetAsideCount:
    """A return to a cut. records: how many of the log lay behind it. segments: those that hold them, verified."""

    folder: str
    cut: int
    segments: int
    records: int


def verify_set_aside(
    archive: Path, scans: list[PartitionScan], expected: Expected, verified: Verifier
) -> tuple[tuple[SetAsideCount, ...], list[Fault]]:
    """What was set aside, oldest first, and its faults."""
    try:
        told = read_set_aside(archive)
    except (ArchiveError, OSError) as error:
        return (), [archive_fault(FaultKind.SET_ASIDE, LOG, str(error))]
    counts, faults = [], list(_strays(archive, {str(entry.get("folder")) for entry in told}))
    here = {_name(scan.place): chain_of(scan.entries) for scan in scans}
    for number, entry in enumerate(told):
        kept = _Return(archive, entry, [later.get("partitions", {}) for later in told[number + 1 :]], here)
        try:
            counts.append(kept.count(expected, verified))
        except (KeyError, TypeError, ValueError, AttributeError, OSError):
            faults.append(archive_fault(FaultKind.SET_ASIDE, LOG, f"line {number + 1} tells of no return to a cut"))
        faults += kept.faults
    return tuple(counts), faults


def _strays(archive: Path, told: set[str]) -> Iterator[Fault]:
    parent = archive / SET_ASIDE
    for path in sorted(parent.iterdir()) if parent.is_dir() else []:
        name = f"{SET_ASIDE}/{path.name}"
        if name not in told and (not path.is_dir() or any(path.iterdir())):
            yield archive_fault(FaultKind.STRAY, name, f"{LOG} does not tell of it")


def _name(place: PartitionPlace) -> str:
    return f"{place.topic.value}/{place.partition}"


class _Return:
    """One line of the log and its folder. later: the partitions of the lines behind it. here: partition to the chain of
    the archive now."""

    def __init__(self, archive: Path, entry: Any, later: list[Any], here: dict[str, str]) -> None:
        self._archive, self._entry, self._later, self._here = archive, entry, later, here
        self.faults: list[Fault] = []

    def count(self, expected: Expected, verified: Verifier) -> SetAsideCount:
        """Verifies the folder. Raises errors of many kinds where the line is no such line."""
        folder, cut = str(self._entry["folder"]), int(self._entry["cut"])
        if not folder.startswith(f"{SET_ASIDE}/") or not folder.removeprefix(f"{SET_ASIDE}/").isdecimal():
            raise ValueError(folder)
        jobs, records = [], 0
        for name, told in self._entry["partitions"].items():
            topic, _, number = name.partition("/")
            place = PartitionPlace(self._archive / folder, Topic(topic), int(number), f"{folder}/")
            wanted = Expected(place.topic, place.partition, expected.run, expected.partitions)
            segments = self._segments(place, name, told)
            jobs += [SegmentJob(place, segment, wanted) for segment in segments]
            records += int(told["next_offset"]) - int(told["end"]) if segments else 0
        for found in verified(jobs):
            self.faults += found.faults
        return SetAsideCount(folder, cut, len(jobs), records)

    def _segments(self, place: PartitionPlace, name: str, told: dict[str, Any]) -> list[Segment]:
        """Those that hold a record behind the cut, and are there."""
        if not (place.folder / MANIFEST).is_file() and self._lies_elsewhere(name, told["chain"]):
            return []
        scan = scan_partition(place)
        gone = [segment for segment in scan.entries if segment.last >= int(told["end"])]
        wanted = {segment.file for segment in gone}
        present = [segment for segment in scan.present if segment.file in wanted]
        if not (len(present) < len(gone) and self._lies_elsewhere(name, told["chain"])):
            self.faults += [fault for fault in scan.faults if not _is_no_fault(fault, wanted)]
        if chain_of(scan.entries) != told["chain"] or scan.end != told["next_offset"]:
            meaning = "it is not the manifest that was set aside: its chain or its end differ from what was said"
            self.faults.append(place.fault(FaultKind.SET_ASIDE, MANIFEST, int(told["end"]), meaning, scan.end - 1))
        return present

    def _lies_elsewhere(self, name: str, chain: str) -> bool:
        """Whether the return was cut short, so that the same records lie in a later folder or in the archive."""
        later = [told[name]["chain"] for told in self._later if name in told]
        return chain in later or self._here.get(name) == chain


def _is_no_fault(fault: Fault, wanted: set[str]) -> bool:
    """Whether it is a line that a killed archiver left torn, or a file from before the cut, which never left."""
    name = fault.file.rpartition("/")[2]
    return fault.kind is FaultKind.TORN or (
        fault.kind is FaultKind.MISSING and name.endswith(".avro") and name not in wanted
    )
