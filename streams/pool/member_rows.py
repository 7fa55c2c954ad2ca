"""What a pool's digest covers of its members, as canonical JSON.

A pool may have a hundred thousand members at each of fifty boundaries, few of which have changed since the one before.
Whoever decides many boundaries of one log keeps the rows between them; they are the same with or without.
"""

from collections.abc import Iterable, Mapping

from schemas.rules import json_text
from schemas.seals import TaskState
from streams.pool.state import Member


class MemberRows:
    """The rows of one log, in which a task's content never changes. A row is made again where its member or its state
    is another object than last time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Member, TaskState | None, str]] = {}

    def of(
        self,
        tasks: Iterable[str],
        members: Mapping[str, Member],
        states: Mapping[str, TaskState],
        contents: Mapping[str, str],
    ) -> list[str]:
        """The rows of tasks, in their order."""
        rows, known = [], self._known
        for task in tasks:
            member, state, row = members[task], states.get(task), known.get(task)
            if row is None or row[0] is not member or row[1] is not state:
                row = known[task] = (member, state, member_row(member, state, contents[task]))
            rows.append(row[2])
        return rows


def member_row(member: Member, state: TaskState | None, content: str) -> str:
    """Id, content, whether it is an original, visits and streaks."""
    original = "true" if member.original else "false"
    streaks = f"{state.visits},{state.low_streak},{state.high_streak}" if state else "0,0,0"
    return f"[{json_text(member.task)},{json_text(content)},{original},[{streaks}]]"
