"""The rollout worker as a real process on a live broker."""

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producers.environments.workbench.source import WorkbenchSource
from schemas.codec import MAGIC
from schemas.epochs import EpochOpened, LearnerStarted, PolicyPublished
from schemas.identity import group_id, trajectory_digest
from schemas.pool import TaskRegistered
from schemas.rollouts import FailureReason, GroupRequested, SlotStatus
from schemas.rules import Rules
from schemas.task import TaskDefinition
from schemas.topics import Topic

if TYPE_CHECKING:
    from tests.integration.conftest import Fact, Wire

MODEL = Path(__file__).parents[2] / "examples" / "warm-start"
TASKS: list[TaskDefinition] = list(WorkbenchSource(train=4, heldout=0).tasks("train"))


def request(asked: TaskDefinition, **changes: Any) -> GroupRequested:
    values: dict[str, Any] = {
        "generation": 1,
        "epoch": 1,
        "step": 1,
        "task": asked.task,
        "group": group_id(1, 1, changes.get("step", 1), asked.task, "train"),
        "purpose": "train",
        "k": 4,
        "turns_total": asked.turns_total,
        "category": asked.category,
        "policy_version": 2,
        "temperature": 1.0,
        "seed": 1,
        "deadline": 0,
        "pool_offset": len(TASKS),
    }
    return GroupRequested(**(values | changes))


async def open_run(wire: "Wire") -> None:
    for task in TASKS:
        await wire.put(Topic.POOL, TaskRegistered(1, task, "pool"))
    await wire.put(Topic.EPOCHS, LearnerStarted(1, "nonce"))
    await wire.put(Topic.EPOCHS, EpochOpened(1, 1, Rules().canonical(), 2, "", {}, "", "", ""))


def start_worker(wire: "Wire", policy: str = "scripted", wait: float = 240.0) -> "subprocess.Popen[bytes]":
    """wait: how long it waits for what a request names and the log may lack; seconds."""
    given = f"{wire.address!r}, {wire.prefix!r}, 'workbench', {policy!r}, wait_seconds={wait}"
    settings = f"RolloutWorkerSettings({given})"
    return wire.start("run_rollout_worker", "producers.rollouts.worker", settings)


def groups(facts: "Sequence[Fact]") -> set[str]:
    return {fact.event.group for fact in facts}


async def test_a_request_comes_back_as_k_trajectories_then_one_result(wire: "Wire") -> None:
    await open_run(wire)
    start_worker(wire)
    asked = request(TASKS[0])
    await wire.put(Topic.ASSIGNMENTS, asked, partition=1)
    (finished,) = await wire.read(Topic.ROLLOUTS, lambda facts: len(facts) == 1)
    trajectories = await wire.read(Topic.TRAJECTORIES, lambda facts: len(facts) == 4)
    result = finished.event
    assert {fact.partition for fact in [finished, *trajectories]} == {1}
    assert (result.group, result.task, result.k, result.purpose) == (asked.group, asked.task, 4, "train")
    assert [slot.status for slot in result.slots] == [SlotStatus.FINISHED] * 4
    assert {slot.policy_version for slot in result.slots} == {2}
    by_attempt = {fact.event.attempt: fact.event for fact in trajectories}
    for number, slot in enumerate(result.slots):
        trajectory = by_attempt[number]
        payload = (trajectory.token_ids, trajectory.logprobs, trajectory.loss_mask, trajectory.messages)
        assert trajectory.execution == result.execution
        assert slot.trajectory == trajectory_digest(*payload)
        assert slot.turns_passed == sum(slot.outcomes) <= slot.turns_total == TASKS[0].turns_total


@pytest.mark.parametrize("signalled", [False, True])
async def test_what_a_worker_leaves_in_mid_group_is_delivered_by_the_next(wire: "Wire", signalled: bool) -> None:
    await open_run(wire)
    asked = [request(TASKS[n % 4], group=f"g{n}", k=128) for n in range(24)]
    for number, event in enumerate(asked):
        await wire.put(Topic.ASSIGNMENTS, event, partition=number % 2)
    first = start_worker(wire)
    before = await wire.read(Topic.ROLLOUTS, lambda facts: len(facts) >= 1)
    if signalled:
        assert wire.end(first) == 0
    else:
        wire.kill(first)
    start_worker(wire)
    wanted = {event.group for event in asked}
    after = await wire.read(Topic.ROLLOUTS, lambda facts: groups(facts) == wanted)
    assert len(before) < len(asked)
    outcomes: dict[str, set[tuple[tuple[bool, ...], ...]]] = {}
    for fact in after:
        outcomes.setdefault(fact.event.group, set()).add(tuple(slot.outcomes for slot in fact.event.slots))
    assert all(len(distinct) == 1 for distinct in outcomes.values())
    executions = {(fact.event.group, fact.event.execution) for fact in after}
    trajectories = await wire.read(Topic.TRAJECTORIES, lambda facts: len(facts) >= 128 * len(executions))
    delivered = {(fact.event.group, fact.event.execution) for fact in trajectories}
    assert executions <= delivered


async def test_what_an_older_generation_asks_for_is_not_run(wire: "Wire") -> None:
    await open_run(wire)
    await wire.put(Topic.ASSIGNMENTS, LearnerStarted(2, "newer"))
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], group="old", generation=1))
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], group="new", generation=2))
    start_worker(wire)
    facts = await wire.read(Topic.ROLLOUTS, lambda facts: len(facts) >= 1)
    assert groups(facts) == {"new"}


async def test_steps_that_are_over_are_skipped_unless_they_evaluate(wire: "Wire") -> None:
    await open_run(wire)
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], group="over", step=1))
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], group="evaluation", step=1, purpose="evaluate"))
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], group="before", step=2))
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], group="last", step=3))
    start_worker(wire)
    facts = await wire.read(Topic.ROLLOUTS, lambda facts: {"evaluation", "before", "last"} <= groups(facts))
    assert "over" not in groups(facts)


@pytest.mark.parametrize("changes", [{"task": "unknown"}, {"turns_total": 99}, {"pool_offset": 0}, {"pool_offset": 99}])
async def test_a_group_that_cannot_be_run_comes_back_as_failed_slots(wire: "Wire", changes: dict[str, Any]) -> None:
    await open_run(wire)
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], **changes))
    start_worker(wire, wait=2.0)
    (fact,) = await wire.read(Topic.ROLLOUTS, lambda facts: len(facts) == 1)
    assert [slot.reason for slot in fact.event.slots] == [FailureReason.ENVIRONMENT] * 4
    assert {slot.turns_passed for slot in fact.event.slots} == {0}


async def test_bytes_that_are_no_event_go_to_the_dead_letters_and_block_nothing(wire: "Wire") -> None:
    await open_run(wire)
    poison = os.urandom(100)
    await wire.put_bytes(Topic.ASSIGNMENTS, poison)
    await wire.put(Topic.ASSIGNMENTS, request(TASKS[0]))
    start_worker(wire)
    await wire.read(Topic.ROLLOUTS, lambda facts: len(facts) == 1)
    (refused,) = await wire.read(Topic.DEAD_LETTERS, lambda facts: len(facts) == 1)
    assert (refused.event.topic, refused.event.offset, refused.event.value) == (f"{wire.prefix}assignments", 0, poison)


@pytest.mark.parametrize("topic", [Topic.ASSIGNMENTS, Topic.POOL])
async def test_an_event_of_an_unknown_schema_stops_the_worker(wire: "Wire", topic: Topic) -> None:
    await open_run(wire)
    await wire.put_bytes(topic, MAGIC + b"unknown!" + b"body")
    worker = start_worker(wire)
    assert await asyncio.to_thread(worker.wait) == 1


@pytest.mark.slow
async def test_a_model_samples_with_the_version_that_is_asked_for(wire: "Wire") -> None:
    await open_run(wire)
    weights = MODEL / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    await wire.put(Topic.EPOCHS, PolicyPublished(1, 0, str(weights), digest))
    await wire.put(Topic.EPOCHS, PolicyPublished(1, 1, str(weights), "0" * 64))
    start_worker(wire, policy=str(MODEL), wait=5.0)
    for version in range(3):
        await wire.put(Topic.ASSIGNMENTS, request(TASKS[0], group=f"version {version}", policy_version=version))
    facts = await wire.read(Topic.ROLLOUTS, lambda facts: len(facts) == 3)
    slots = {fact.event.group: fact.event.slots for fact in facts}
    assert {slot.status for slot in slots["version 0"]} == {SlotStatus.FINISHED}
    assert {slot.reason for slot in slots["version 1"]} == {FailureReason.POLICY}  # the weights are not those published
    assert {slot.reason for slot in slots["version 2"]} == {FailureReason.POLICY}  # nobody published it
    for fact in await wire.read(Topic.TRAJECTORIES, lambda facts: len(facts) == 4):
        event = fact.event
        assert len(event.token_ids) == len(event.logprobs) == len(event.loss_mask)
        assert sum(event.loss_mask) > 0
