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
from streams.pool.state import PoolState
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


def plain_row(task: str, original: bool, state: TaskState | None, content: str) -> list[Any]:
    streaks = [state.visits, state.low_streak, state.high_streak] if state else [0, 0, 0]
    return [task, content, original, streaks]


@given(st.lists(st.dictionaries(names, st.tuples(st.booleans(), moved), max_size=6), min_size=1, max_size=5))
def test_rows_kept_from_boundary_to_boundary_are_those_made_anew(pools: list[dict[str, Any]]) -> None:
    kept = MemberRows()
    states: dict[str, TaskState] = {}
    for pool in pools:
        counted = {task: counts for task, (_, counts) in pool.items() if counts is not None}
        states = {**states, **{task: TaskState(task, "base", (), *counts) for task, counts in counted.items()}}
        tasks, generated = tuple(sorted(pool)), {task for task, (original, _) in pool.items() if not original}
        contents = {task: f"content of {task}" for task in pool}
        rows = kept.joined(tasks, generated, states, contents)
        assert rows == MemberRows().joined(tasks, generated, states, contents)
        plain = [plain_row(task, task not in generated, states.get(task), contents[task]) for task in tasks]
        assert b"[%s]" % rows == canonical_json(plain).encode()


def test_a_row_is_made_again_where_a_state_is_gone_or_in_another_order() -> None:
    kept, contents = MemberRows(), {"a": "1", "b": "2"}
    a, b = TaskState("a", "base", (), 1, 0, 0), TaskState("b", "base", (), 2, 0, 0)
    for states in ({"a": a, "b": b}, {"b": b, "a": a}, {"a": a}, {"b": b}, {}, {"a": b, "b": a}):
        rows = kept.joined(("a", "b"), {"b"}, states, contents)
        assert rows == MemberRows().joined(("a", "b"), {"b"}, states, contents)


def plain_digest(state: PoolState, epoch: int, groups: dict[str, TaskState], text: str, previous: str) -> str:
    made = state.materialized
    assert made is not None
    gone = sorted(state.retired.values(), key=lambda one: one.task)
    content = {
        "epoch": epoch,
        "members": [
            plain_row(task, state.members[task].original, groups.get(task), state.contents[task])
            for task in sorted(state.members)
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
