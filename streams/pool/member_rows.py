"""What a pool's digest covers of its members, as canonical JSON.

A pool may have a hundred thousand members at each of fifty boundaries, few of which have changed since the one before.
Whoever decides many boundaries of one log keeps the rows between them; they are the same with or without.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import compress
from operator import is_, is_not

from schemas.rules import json_text
from schemas.seals import TaskState


class MemberRows:
    """The rows of one log, in which a task's content never changes. A row is made again where its task is new or no
    longer original, or its state another object than last time; the others are passed over without a step of the
    interpreter for each."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._tasks: tuple[str, ...] = ()
        self._rows: list[bytes] = []
        self._generated: Set[str] = frozenset()
        self._states: Mapping[str, TaskState] = {}

    def joined(
        self,
        tasks: tuple[str, ...],
        generated: Set[str],
        states: Mapping[str, TaskState],
        contents: Mapping[str, str],
    ) -> bytes:
        """The rows of tasks in their order, with a comma between. What is given is kept until the next call, and must
        not change."""
        begun = (self._aligned(tasks) | (generated ^ self._generated)) & self._places.keys()
        for task in begun:
            self._rows[self._places[task]] = row_head(task, contents[task], task not in generated)
        for task in begun.union(_changed(tasks, states, self._states)) & self._places.keys():
            place = self._places[task]
            self._rows[place] = self._rows[place].rpartition(b"[")[0] + row_tail(states.get(task))
        self._generated, self._states = generated, states
        return b",".join(self._rows)

    def _aligned(self, tasks: tuple[str, ...]) -> set[str]:
        """Brings the rows into the order of tasks; those of which there is none."""
        if tasks == self._tasks:
            return set()
        known = dict(zip(self._tasks, self._rows, strict=True))
        self._rows = [known.get(task, b"") for task in tasks]
        self._tasks, self._places = tasks, dict(zip(tasks, range(len(tasks)), strict=True))
        return set(tasks) - known.keys()


def _changed(tasks: Sequence[str], states: Mapping[str, TaskState], before: Mapping[str, TaskState]) -> Iterable[str]:
    """The tasks that have another state than before. Maps of the same tasks in one order are gone through side by side,
    which spares looking up each task in both."""
    if len(states) == len(before) and all(map(is_, states, before)):
        return compress(states, map(is_not, states.values(), before.values()))
    return compress(tasks, map(is_not, map(states.get, tasks), map(before.get, tasks)))


def row_head(task: str, content: str, original: bool) -> bytes:
    """Id, content, whether it is an original; a bracket where the tail begins."""
    return f"[{json_text(task)},{json_text(content)},{'true' if original else 'false'},[".encode()


def row_tail(state: TaskState | None) -> bytes:
    """Visits and streaks."""
    return b"[%d,%d,%d]]" % (state.visits, state.low_streak, state.high_streak) if state else b"[0,0,0]]"
