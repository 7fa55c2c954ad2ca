"""The synthesis worker as a real process on a live broker."""

import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from producers.environments.workbench.source import WorkbenchSource
from schemas.codec import encode
from schemas.identity import content_digest, seed_id
from schemas.pool import PoolMaterialized, SeedSettled, Settlement, TaskRegistered, VariantVerified
from schemas.rules import Rules, SynthesisRules
from schemas.seals import BoundarySeedSelected
from schemas.task import TaskDefinition
from schemas.topics import Topic

if TYPE_CHECKING:
    from tests.integration.conftest import Fact, Wire

TASKS: list[TaskDefinition] = list(WorkbenchSource(train=12, heldout=0).tasks("train"))
RULES = Rules(synthesis=SynthesisRules(variants_per_seed=2)).canonical()


def seed_of(asked: TaskDefinition, **changes: Any) -> BoundarySeedSelected:
    values: dict[str, Any] = {
        "epoch": 1,
        "step": 1,
        "seed": seed_id(1, 1, 1, asked.task),
        "task": asked.task,
        "category": asked.category,
        "phi": 1.0,
        "variance": 0.25,
        "rank": 0,
        "quota": 2,
        "evidence": ("group",),
        "rules": RULES,
        "pool_offset": len(TASKS) + 1,
    }
    return BoundarySeedSelected(**(values | changes))


async def open_run(wire: "Wire") -> None:
    for task in TASKS:
        await wire.put(Topic.POOL, TaskRegistered(1, task, "pool"))
    members = tuple(task.task for task in TASKS)
    await wire.put(Topic.POOL, PoolMaterialized(1, 0, 1, "d", "", members, (), 0, 0, {}))


def start_worker(wire: "Wire") -> "subprocess.Popen[bytes]":
    settings = f"SynthesisWorkerSettings({wire.address!r}, {wire.prefix!r}, 'workbench')"
    return wire.start("run_synthesis_worker", "producers.synthesis.worker", settings)


def settled(facts: "Sequence[Fact]") -> list[SeedSettled]:
    return [fact.event for fact in facts if isinstance(fact.event, SeedSettled)]


def verified(facts: "Sequence[Fact]") -> list[VariantVerified]:
    return [fact.event for fact in facts if isinstance(fact.event, VariantVerified)]


async def test_each_seed_ends_in_variants_and_then_one_settlement(wire: "Wire") -> None:
    await open_run(wire)
    seeds = [seed_of(task, rank=rank) for rank, task in enumerate(TASKS[:4])]
    for number, seed in enumerate(seeds):
        await wire.put(Topic.SEEDS, seed, partition=number % 2)
    start_worker(wire)
    facts = await wire.read(Topic.POOL, lambda facts: len(settled(facts)) == len(seeds))
    assert {event.seed for event in settled(facts)} == {seed.seed for seed in seeds}
    assert verified(facts)
    for end in settled(facts):
        own = [fact for fact in facts if isinstance(fact.event, VariantVerified) and fact.event.seed == end.seed]
        assert end.variants == len(own)
        assert (end.outcome == Settlement.DONE) == bool(own)
        (place,) = [fact.offset for fact in facts if fact.event == end]
        assert all(fact.offset < place for fact in own)
    for variant in verified(facts):
        assert variant.content == content_digest(variant.definition)
    story = await wire.read(Topic.SYNTHESIS, lambda facts: {f.event.seed for f in facts} == {s.seed for s in seeds})
    home = {seed.seed: number % 2 for number, seed in enumerate(seeds)}
    assert all(fact.partition == home[fact.event.seed] for fact in story)


async def test_a_settled_seed_is_not_settled_again(wire: "Wire") -> None:
    await open_run(wire)
    again, fresh = seed_of(TASKS[0]), seed_of(TASKS[1])
    await wire.put(Topic.POOL, SeedSettled(1, again.seed, 1, 1, Settlement.EXPIRED, 0))
    await wire.put(Topic.SEEDS, again)
    await wire.put(Topic.SEEDS, fresh)
    await wire.put(Topic.SEEDS, fresh)
    last = seed_of(TASKS[2])
    await wire.put(Topic.SEEDS, last)
    start_worker(wire)
    facts = await wire.read(Topic.POOL, lambda facts: last.seed in {event.seed for event in settled(facts)})
    assert [event.seed for event in settled(facts)] == [again.seed, fresh.seed, last.seed]


async def test_a_killed_workers_seed_is_redone_with_the_same_bytes(wire: "Wire") -> None:
    await open_run(wire)
    seeds = [seed_of(task) for task in TASKS]
    for number, seed in enumerate(seeds):
        await wire.put(Topic.SEEDS, seed, partition=number % 2)
    first = start_worker(wire)
    await wire.read(Topic.SYNTHESIS, lambda facts: len(facts) >= 1)
    wire.kill(first)
    start_worker(wire)
    wanted = {seed.seed for seed in seeds}
    facts = await wire.read(Topic.POOL, lambda facts: {event.seed for event in settled(facts)} == wanted)
    by_key: dict[tuple[str, ...], set[bytes]] = {}
    events: list[SeedSettled | VariantVerified] = [*settled(facts), *verified(facts)]
    for event in events:
        by_key.setdefault((event.KIND, *event.natural_key), set()).add(encode(event))
    assert all(len(distinct) == 1 for distinct in by_key.values())


async def test_a_seed_that_cannot_be_worked_on_is_settled_as_failed(wire: "Wire") -> None:
    await open_run(wire)
    poison = os.urandom(64)
    await wire.put_bytes(Topic.SEEDS, poison)
    await wire.put(Topic.SEEDS, seed_of(TASKS[0], task="unknown", seed="a"))
    await wire.put(Topic.SEEDS, seed_of(TASKS[0], rules="{}x", seed="b"))
    start_worker(wire)
    facts = await wire.read(Topic.POOL, lambda facts: len(settled(facts)) == 2)
    assert [(event.seed, event.outcome) for event in settled(facts)] == [("a", "failed"), ("b", "failed")]
    (refused,) = await wire.read(Topic.DEAD_LETTERS, lambda facts: len(facts) == 1)
    assert (refused.event.topic, refused.event.value) == (f"{wire.prefix}seeds", poison)
