import json
from typing import Any

import pytest

from schemas.pool import OperatorDecided, TaskInjected, TaskRetired, VariantVerified
from schemas.synthesis import VariantRejected
from schemas.topics import Topic
from streams.audit.errors import AuditError
from streams.audit.load.shared_work import shared
from streams.audit.load.source import ArchiveSource
from streams.audit.trace import Lineage, TaskHistory, history_lines, lineage
from tests.streams.audit.forge import GOLDEN, places

ARCHIVE = GOLDEN / "windowed"


def history_of(found: Lineage, task: str) -> TaskHistory:
    return next(history for _, history in found.tasks() if history.task == task)


def kinds(history: TaskHistory) -> list[str]:
    return [fact.kind for fact in history.facts]


def test_a_variant_is_shown_below_the_original_that_it_descends_from() -> None:
    _, variant = places(ARCHIVE, Topic.POOL, lambda event: isinstance(event, TaskInjected))[0]
    found = lineage(ArchiveSource(ARCHIVE), variant.task)
    assert found.root.parent is None
    history = history_of(found, variant.task)
    assert history.task == variant.task
    assert history.seed == variant.seed
    assert {"verified", "injected"} <= set(kinds(history))


def test_every_task_of_a_run_has_a_story_with_all_that_the_log_says_of_it() -> None:
    verified = {e.definition.task: e for _, e in places(ARCHIVE, Topic.POOL, lambda e: isinstance(e, VariantVerified))}
    retired = {e.task: e for _, e in places(ARCHIVE, Topic.POOL, lambda e: isinstance(e, TaskRetired))}
    for task, event in list(retired.items())[:4]:
        history = history_of(lineage(ArchiveSource(ARCHIVE), task), task)
        gone = next(fact for fact in history.facts if fact.kind == "retired")
        assert event.rule in gone.text
        assert all(group in gone.text for group in event.evidence)
        measured = [fact for fact in history.facts if fact.kind == "measured"]
        rollouts = [fact for fact in history.facts if fact.kind.startswith("rollout")]
        assert len(measured) == len(rollouts) >= event.visits
        assert all(any(group in fact.text for fact in rollouts) for group in event.evidence)
    for task in list(verified)[:4]:
        assert history_of(lineage(ArchiveSource(ARCHIVE), task), task).task == task


def test_a_seed_shows_its_attempts_gate_by_gate_and_its_settlement() -> None:
    _, variant = places(ARCHIVE, Topic.POOL, lambda event: isinstance(event, VariantVerified))[0]
    found = lineage(ArchiveSource(ARCHIVE), variant.definition.task)
    parent = history_of(found, variant.definition.parent)
    stages = [fact.text for fact in parent.facts if fact.kind == "stage"]
    assert any("plan passed" in text for text in stages)
    assert any("critique passed" in text for text in stages)
    assert any(variant.seed in fact.text for fact in parent.facts if fact.kind == "settled")


def test_a_story_is_told_in_order_and_marks_the_task_asked_for() -> None:
    _, variant = places(ARCHIVE, Topic.POOL, lambda event: isinstance(event, TaskInjected))[0]
    found = lineage(ArchiveSource(ARCHIVE), variant.task)
    lines = list(history_lines(found))
    assert sum("<- asked for" in line for line in lines) == 1
    epochs = [fact.epoch for fact in found.root.facts]
    assert epochs == sorted(epochs)


def test_a_disturbed_run_tells_an_operators_order_a_missing_group_a_probe_and_a_return() -> None:
    archive = GOLDEN / "disturbed"
    _, ordered = places(archive, Topic.POOL, lambda event: isinstance(event, OperatorDecided))[0]
    history = history_of(lineage(ArchiveSource(archive), ordered.task), ordered.task)
    assert {"registered", "retired", "probed", "injected"} <= set(kinds(history))
    assert any(ordered.who in fact.text for fact in history.facts)
    rejected = places(archive, Topic.SYNTHESIS, lambda event: isinstance(event, VariantRejected))
    found = lineage(ArchiveSource(archive), rejected[0][1].task)
    assert any("not coherent" in fact.text for fact in history_of(found, rejected[0][1].task).facts)


def test_a_task_that_the_log_does_not_know_is_said_so() -> None:
    with pytest.raises(AuditError, match="the log knows no task 'nobody'"):
        lineage(ArchiveSource(ARCHIVE), "nobody")


def test_a_story_is_the_same_where_another_process_reads_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    _, variant = places(ARCHIVE, Topic.POOL, lambda event: isinstance(event, TaskInjected))[0]
    alone = list(history_lines(lineage(ArchiveSource(ARCHIVE), variant.task)))
    processes: list[int] = []

    def counted(jobs: Any, number: int) -> Any:
        processes.append(number)
        return shared(jobs, number)

    monkeypatch.setattr("streams.audit.trace.shared", counted)
    monkeypatch.setattr("streams.audit.trace._MANY_RESULTS", 0)
    assert list(history_lines(lineage(ArchiveSource(ARCHIVE), variant.task))) == alone
    assert processes == [2] and any("rollout (train)" in line for line in alone)


def test_a_chain_of_variants_may_be_deeper_than_python_calls_or_json_nest() -> None:
    history = root = TaskHistory("task-0", None, "base", 3)
    for number in range(1, 5_000):
        child = TaskHistory(f"task-{number}", history.task, "base", 3)
        history.children.append(child)
        history = child
    found = Lineage("task-4999", root)
    assert [depth for depth, _ in found.tasks()] == list(range(5_000))
    assert len(json.dumps([history.document() for _, history in found.tasks()])) > 5_000
    assert list(history_lines(found))[-1].endswith("<- asked for")
