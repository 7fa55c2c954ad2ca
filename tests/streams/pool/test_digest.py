"""What a pool's digest covers is the canonical JSON of its content."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.identity import digest
from schemas.seals import TaskState
from streams.pool.state import PoolState
from tests.streams.pool.build import closed, first_pool, folded, group, rules, settled, variant


def content_digest(state: PoolState, epoch: int, tasks: dict[str, TaskState], text: str, previous: str) -> str:
    def row(task: str) -> list[Any]:
        known = tasks.get(task)
        streaks = [known.visits, known.low_streak, known.high_streak] if known else [0, 0, 0]
        return [task, state.contents[task], state.members[task].original, streaks]

    assert state.materialized is not None
    gone = sorted(state.retired.values(), key=lambda one: one.task)
    content = {
        "epoch": epoch,
        "members": [row(task) for task in sorted(state.members)],
        "queue": list(state.materialized.queue),
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
    state = first_pool(chosen, *names)
    for epoch, passed in enumerate(epochs, 1):
        state = folded([variant("a", f"content {epoch}", step=epoch, epoch=epoch), settled("a", epoch, epoch)], state)
        groups = [group(name, sum_, chosen=chosen) for name, sum_ in zip(names, passed, strict=True)]
        before = state.digest
        state, _ = closed(state, epoch, chosen, *groups)
        tasks = {one.task: one.state for one in groups}
        assert state.digest == content_digest(state, epoch, tasks, chosen.canonical(), before)
