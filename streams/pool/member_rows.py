"""What a pool's digest covers of its members, as canonical JSON.

A pool may have a hundred thousand members at each of fifty boundaries, few of which have changed since the one before.
Whoever decides many boundaries of one log keeps the rows between them; they are the same with or without.
"""

from collections.abc import Mapping
from itertools import compress, count
from operator import is_not, or_

from schemas.rules import json_text
from schemas.seals import TaskState
from streams.pool.state import Member


class MemberRows:
    """The rows of one log, in which a task's content never changes. A row is made again where its member or its state
    is another object than last time; the others are passed over without a step of the interpreter for each."""

    def __init__(self) -> None:
        self._tasks: tuple[str, ...] = ()
        self._members: list[Member | None] = []
        self._states: list[TaskState | None] = []
        self._rows: list[str] = []
        self._heads: dict[str, str] = {}

    def joined(
        self,
        tasks: tuple[str, ...],
        members: Mapping[str, Member],
        states: Mapping[str, TaskState],
        contents: Mapping[str, str],
    ) -> str:
        """The rows of tasks in their order, with a comma between."""
        if tasks != self._tasks:
            self._align(tasks)
        now_members, now_states = list(map(members.__getitem__, tasks)), list(map(states.get, tasks))
        changed = map(or_, map(is_not, now_members, self._members), map(is_not, now_states, self._states))
        for place in compress(count(), changed):
            self._rows[place] = self._row(now_members[place], now_states[place], contents)
        self._members, self._states = list[Member | None](now_members), now_states
        return ",".join(self._rows)

    def _row(self, member: Member, state: TaskState | None, contents: Mapping[str, str]) -> str:
        head = self._heads.get(member.task)
        if head is None or not head.endswith(_ENDINGS[member.original]):
            head = self._heads[member.task] = row_head(member, contents[member.task])
        return head + row_tail(state)

    def _align(self, tasks: tuple[str, ...]) -> None:
        """Brings what is known into the order of tasks; of a new one nothing is."""
        known = dict(zip(self._tasks, zip(self._members, self._states, self._rows, strict=True), strict=True))
        found = [known.get(task, _UNKNOWN) for task in tasks]
        self._tasks = tasks
        self._members = [member for member, _, _ in found]
        self._states = [state for _, state, _ in found]
        self._rows = [row for _, _, row in found]


_UNKNOWN: tuple[Member | None, TaskState | None, str] = (None, None, "")


_ENDINGS = (",false,", ",true,")


def row_head(member: Member, content: str) -> str:
    """Id, content, whether it is an original."""
    return f"[{json_text(member.task)},{json_text(content)}{_ENDINGS[member.original]}"


def row_tail(state: TaskState | None) -> str:
    """Visits and streaks."""
    return f"[{state.visits},{state.low_streak},{state.high_streak}]]" if state else "[0,0,0]]"
