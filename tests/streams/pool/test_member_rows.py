"""What a pool's digest covers, written row by row, is the canonical JSON of its content."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.identity import digest
from schemas.rules import canonical_json
from schemas.seals import TaskState
from streams.pool.decide import decide_boundary
from streams.pool.member_rows import MemberRows
from streams.pool.state import Member, PoolState
from tests.streams.pool.build import (
    closed,
    decided,
    evidence,
    first_pool,
    folded,
    group,
    opened,
    rules,
    settled,
    variant,
)

counts = st.integers(0, 9)
names = st.text(min_size=1, max_size=8)
moved = st.one_of(st.none(), st.tuples(counts, counts, counts))


def plain_row(member: Member, state: TaskState | None, content: str) -> list[Any]:
    streaks = [state.visits, state.low_streak, state.high_streak] if state else [0, 0, 0]
    return [member.task, content, member.original, streaks]


@given(st.lists(st.dictionaries(names, st.tuples(st.booleans(), moved), max_size=6), min_size=1, max_size=5))
def test_rows_kept_from_boundary_to_boundary_are_those_made_anew(pools: list[dict[str, Any]]) -> None:
    kept = MemberRows()
    members: dict[str, Member] = {}
    states: dict[str, TaskState] = {}
    for pool in pools:
        for task, (original, counted) in pool.items():
            if task not in members or original != members[task].original:
                members[task] = Member(task, original, "", 0)
            if counted is not None:
                states[task] = TaskState(task, "base", (), *counted)
        contents = {task: f"content of {task}" for task in members}
        tasks = tuple(sorted(pool))
        rows = kept.joined(tasks, members, states, contents)
        assert rows == MemberRows().joined(tasks, members, states, contents)
        plain = [plain_row(members[task], states.get(task), contents[task]) for task in tasks]
        assert f"[{rows}]" == canonical_json(plain)


def plain_digest(state: PoolState, epoch: int, groups: dict[str, TaskState], text: str, previous: str) -> str:
    made = state.materialized
    assert made is not None
    gone = sorted(state.retired.values(), key=lambda one: one.task)
    content = {
        "epoch": epoch,
        "members": [
            plain_row(state.members[task], groups.get(task), state.contents[task]) for task in sorted(state.members)
        ],
        "queue": list(made.queue),
        "retired": [[one.task, one.rule, one.since, one.probed] for one in gone],
        "rules": text,
        "previous": previous,
    }
    return digest(content)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_digest_of_every_boundary_is_that_of_its_content(epochs: list[list[int]]) -> None:
    chosen = rules(inject_share="1", protect_originals=False, p_max=3)
    names = ("a", "b", "c", 'd "quoted" é')
    state, rows = first_pool(chosen, *names), MemberRows()
    for epoch, passed in enumerate(epochs, 1):
        state = folded([variant("a", f"content {epoch}", step=epoch, epoch=epoch), settled("a", epoch, epoch)], state)
        groups = [group(name, sum_, chosen=chosen) for name, sum_ in zip(names, passed, strict=True)]
        before = state.digest
        decision = decided(state, epoch, chosen, *groups)
        cut = replace(state, generation=max(1, state.generation))
        marker = opened(epoch, chosen, generation=cut.generation)
        again = decide_boundary(cut, marker, evidence(epoch, *groups, selected=None), cut.generation, rows)
        state, _ = closed(state, epoch, chosen, *groups)
        assert state.digest == plain_digest(
            state, epoch, {one.task: one.state for one in groups}, chosen.canonical(), before
        )
        assert (decision.materialized, again.materialized) == (state.materialized, state.materialized)
