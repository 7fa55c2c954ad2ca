"""Where the tasks of a tree are named in the bytes of a log, so that the rest of it need not be decoded.

In a group, of a result or of a seal, a purpose follows the task; nowhere else in them. A seal also tells the state of
every task of its partition, which is no news of any.
"""

import re
from collections.abc import Collection, Iterator

from schemas.codec import MAGIC, fingerprint, schema_text, schema_versions
from schemas.rollouts import Purpose
from schemas.seals import PartitionSealed, SelectionClosed
from streams.audit.quick_result import written
from streams.audit.quick_seal import seal_header

_PURPOSES = tuple([written(purpose.value) for purpose in Purpose])
_FEW = 4


class Mentions:
    """Of some tasks. Every method gives places in ascending order."""

    def __init__(self, tasks: Collection[str]) -> None:
        self._written = {written(task) for task in tasks}
        self._lengths = sorted({len(task) for task in self._written})
        self._named = re.compile(b"|".join([re.escape(task.encode()) for task in sorted(tasks)]))

    def named(self, data: bytes) -> list[int]:
        """Where an id stands, whatever for."""
        if len(self._written) <= _FEW:
            return sorted([at for task in self._written for at in _places(data, task)])
        return [found.start() for found in self._named.finditer(data)]

    def grouped(self, data: bytes) -> list[int]:
        """Where a group is one of theirs. Few tasks are looked for; of many, each group's task is looked up."""
        if len(self._written) <= _FEW:
            ends = [at + len(task) for task in self._written for at in _places(data, task)]
            return sorted([end for end in ends if data.startswith(_PURPOSES, end)])
        ends = [at for purpose in _PURPOSES for at in _places(data, purpose)]
        return sorted([end for end in ends if any(data[end - size : end] in self._written for size in self._lengths)])

    def sealed(self, data: bytes) -> list[int]:
        """Where in `rods.seals` a group or a selection may name them."""
        return sorted([*self.grouped(data), *self._in_other_frames(data)])

    def _in_other_frames(self, data: bytes) -> Iterator[int]:
        """Where frames begin that are no seals of the newest version, and name one before the next such seal."""
        for at in [at for header in _OTHERS for at in _places(data, header)]:
            end = data.find(seal_header(), at)
            if self._named.search(data, at, end if end >= 0 else len(data)):
                yield at


def _places(data: bytes, wanted: bytes) -> list[int]:
    places = []
    at = data.find(wanted)
    while at >= 0:
        places.append(at)
        at = data.find(wanted, at + 1)
    return places


def _headers(kind: str) -> list[bytes]:
    return [MAGIC + fingerprint(schema_text(kind, version)) for version in schema_versions(kind)]


_OTHERS = [
    one for kind in (PartitionSealed.KIND, SelectionClosed.KIND) for one in _headers(kind) if one != seal_header()
]
"""Of frames on `rods.seals` that are decoded to see whom they name."""
