"""Consistent cuts: ends of every partition at which no decision is without what it was decided on.

Ends are read downstream first: whatever a partition holds below its end was caused by records that upstream partitions,
read later, hold below theirs. A cut is recorded in ``cuts.jsonl`` only once the archive holds everything up to it, so
that a cut on disk can always be restored. Lines are chained and carry their own sha256.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from eventlog.connection import Broker
from eventlog.reader import end_offsets
from eventlog.standstill import Place
from schemas.rules import canonical_json
from schemas.topics import DOWNSTREAM_FIRST, Topic
from streams.archive.durable import append_durably, locked, sync
from streams.archive.errors import ArchiveError
from streams.archive.manifest import newest_entry
from streams.archive.partition import partition_folder

CUTS = "cuts.jsonl"
_LOCK = "cuts.lock"


@dataclass(frozen=True, slots=True)
class Cut:
    """Ends that belong together.

    number: from 1.
    name: the checkpoint it belongs to, for people and for resuming.
    ends: ``topic/partition``, without the prefix, to one past the last record.
    previous: the sha256 of the cut before it, empty for the first.
    """

    number: int
    name: str
    ends: dict[str, int]
    previous: str
    sha256: str

    def end(self, topic: Topic, partition: int) -> int:
        """The end of a partition; 0 where the cut does not know it."""
        return self.ends.get(place_name(topic, partition), 0)

    def by_place(self) -> dict[tuple[Topic, int], int]:
        """The ends by topic and partition."""
        named = [(*name.rpartition("/"), end) for name, end in self.ends.items()]
        return {(Topic(topic), int(number)): end for topic, _, number, end in named}


def place_name(topic: Topic, partition: int) -> str:
    """How a cut names a partition, whatever the prefix."""
    return f"{topic.value}/{partition}"


def read_cuts(folder: Path) -> tuple[Cut, ...]:
    """The cuts of an archive, oldest first, their chain checked. Raises ArchiveError. A torn last line is ignored."""
    path = folder / CUTS
    if not path.exists():
        return ()
    cuts: list[Cut] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            cut = cut_of(line)
        except ValueError as error:
            raise ArchiveError(f"line {number} of {path} is no cut: {error}") from error
        if cut.number != number or cut.previous != (cuts[-1].sha256 if cuts else ""):
            raise ArchiveError(f"the chain of {path} breaks at line {number}")
        cuts.append(cut)
    return tuple(cuts)


def cut_of(line: bytes) -> Cut:
    """The cut of a line without its newline. Raises ValueError where the line is no cut, or was changed."""
    try:
        cut = Cut(**json.loads(line))
        sealed = _sealed(cut.number, cut.name, cut.ends, cut.previous)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("it does not parse") from error
    if sealed != cut or _line(sealed) != line + b"\n":
        raise ValueError("its sha256 is not that of its content")
    if not all(type(end) is int and end >= 0 for end in cut.ends.values()):
        raise ValueError("an end is no offset")
    return cut


def record_cut(folder: Path, name: str, ends: Mapping[tuple[Topic, int], int]) -> Cut:
    """Appends a cut, on disk when this returns. Raises ArchiveError where the archive does not hold all of it yet."""
    for (topic, partition), end in ends.items():
        held = archived_end(folder, topic, partition)
        if held < end:
            raise ArchiveError(f"the archive ends at {held} in {place_name(topic, partition)}, before the cut's {end}")
    with locked(folder / _LOCK):
        cuts = read_cuts(folder)
        named = {place_name(topic, partition): end for (topic, partition), end in sorted(ends.items())}
        cut = _sealed(len(cuts) + 1, name, named, cuts_chain(cuts))
        append_durably(folder / CUTS, sum(len(_line(known)) for known in cuts), _line(cut))
        sync(folder)
    return cut


async def read_ends(broker: Broker, prefix: str, partitions: int) -> dict[tuple[Topic, int], int]:
    """The end of every partition of a run, topic after topic, downstream first."""
    ends: dict[tuple[Topic, int], int] = {}
    for topic in DOWNSTREAM_FIRST:
        numbers = range(partitions if topic.by_task else 1)
        places: list[Place] = [(topic.named(prefix), number) for number in numbers]
        found = await end_offsets(broker, places)
        ends |= {(topic, number): found[topic.named(prefix), number] for number in numbers}
    return ends


def archived_end(folder: Path, topic: Topic, partition: int) -> int:
    """One past the last record that a partition's archive holds durably; 0 where it holds none."""
    newest = newest_entry(partition_folder(folder, topic, partition))
    return newest.last + 1 if newest else 0


def cuts_chain(cuts: tuple[Cut, ...]) -> str:
    """The head of the cuts' chain; empty without cuts."""
    return cuts[-1].sha256 if cuts else ""


def _sealed(number: int, name: str, ends: dict[str, int], previous: str) -> Cut:
    content = canonical_json([number, name, ends, previous])
    return Cut(number, name, ends, previous, hashlib.sha256(content.encode()).hexdigest())


def _line(cut: Cut) -> bytes:
    return canonical_json(asdict(cut)).encode() + b"\n"
