import pytest

from producers.errors import TaskUnknownError
from producers.task_log import TaskIndex
from schemas.epochs import LearnerStarted
from schemas.identity import content_digest
from schemas.pool import PoolMaterialized, SeedSettled, TaskRegistered, VariantVerified
from schemas.task import TaskDefinition, Turn


def defined(name: str, category: str = "base") -> TaskDefinition:
    return TaskDefinition(name, "workbench", category, name, ("Files",), "{}", (Turn(("do",), ("f()",)),))


def materialized(epoch: int, *members: str, generation: int = 1) -> PoolMaterialized:
    return PoolMaterialized(generation, epoch, epoch, "d", "", members, (), 0, 0, {})


def folded(*events: object) -> TaskIndex:
    index = TaskIndex()
    for offset, event in enumerate(events):
        index.apply(offset, event)
    return index


def test_a_definition_counts_from_behind_its_offset_on() -> None:
    index = folded(TaskRegistered(1, defined("a"), "pool"), VariantVerified("s", 1, 1, 0, defined("v"), "c"))
    assert index.definition("a", 1) == defined("a")
    assert index.definition("v", 2) == defined("v")
    with pytest.raises(TaskUnknownError, match="'v' is not registered before pool offset 1"):
        index.definition("v", 1)


def test_the_first_fact_of_a_key_wins() -> None:
    index = folded(
        TaskRegistered(1, defined("a"), "pool"),
        TaskRegistered(1, defined("a", "other"), "pool"),
        materialized(0, "a"),
        materialized(0),
    )
    assert index.definition("a", 4).category == "base"
    assert index.members(4) == (defined("a"),)


def test_members_are_those_of_the_last_pool_before_the_offset() -> None:
    index = folded(
        TaskRegistered(1, defined("a"), "pool"),
        TaskRegistered(1, defined("b"), "pool"),
        materialized(0, "a"),
        materialized(1, "b", "a"),
    )
    assert index.members(2) == ()
    assert index.members(3) == (defined("a"),)
    assert index.members(4) == (defined("b"), defined("a"))
    assert index.contents(3) == {content_digest(defined("a"))}


def test_a_learner_of_an_older_generation_says_nothing() -> None:
    index = folded(
        LearnerStarted(2, "n"),
        TaskRegistered(1, defined("a"), "pool"),
        TaskRegistered(2, defined("b"), "pool"),
        materialized(0, "a", generation=1),
        materialized(0, "b", generation=2),
        SeedSettled(1, "old", 1, 1, "expired", 0),
        SeedSettled(0, "worked", 1, 1, "done", 1),
    )
    assert index.members(9) == (defined("b"),)
    assert not index.settled("old")
    assert index.settled("worked")
    with pytest.raises(TaskUnknownError):
        index.definition("a", 9)
