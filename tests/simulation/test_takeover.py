"""Schedules that people have lost results with, step by step."""

import pytest

from schemas.topics import Topic
from tests.simulation import oracle
from tests.simulation.log import SEALS
from tests.simulation.schedule import setting_of, undisturbed
from tests.simulation.simulate import undisturbed_digests
from tests.simulation.verdict import check
from tests.simulation.wire import patched
from tests.simulation.world import World
from tests.streams.rollout_log import barrier, expected, result

ONE_PARTITION = next(world for world in range(48) if setting_of(world).partitions == 1)


def ticks(world: World, count: int) -> None:
    for _ in range(count):
        world.now += 1
        world.tick()


@pytest.mark.parametrize("world_number", range(6))
@pytest.mark.parametrize("before", [150, 220, 300])
def test_a_worker_paused_in_mid_batch_and_woken_after_its_successor_began_loses_nothing(
    world_number: int, before: int
) -> None:
    world = World(undisturbed(world_number))
    with patched(world.wire.patches(small_chunks=False, rules_bytes=0)):
        first = world.start_worker()
        world.rebalance()
        world.start_learner()
        ticks(world, before)
        first.paused = True
        second = world.start_worker()
        world.rebalance()
        ticks(world, 60)
        first.paused = False
        assert first.deaf
        ticks(world, 60)
        world.kill_worker(first.name)
        world.kill_worker(second.name)
        world.start_worker()
        world.rebalance()
        world.train()
        world.drain()
        assert check(world) == undisturbed_digests(world_number)


@pytest.mark.parametrize("died_after", [0, 100, 150])
def test_results_before_and_after_a_kill_are_all_in_the_seal(died_after: int) -> None:
    """Committed every hundred, 150 sent, killed, 150 sent: the seal has all 300."""
    world = World(undisturbed(ONE_PARTITION))
    tasks = [f"task-{number}" for number in range(300)]
    place = (Topic.ROLLOUTS, 0)
    with patched(world.wire.patches(small_chunks=False, rules_bytes=0)):
        worker = world.start_worker()
        world.rebalance()
        for task in tasks[:150]:
            world.put(place, result(task))
        while worker.consumer.positions.get(place, 0) < died_after:
            world.now += 1
            worker.step()
        world.kill_worker(worker.name)
        world.start_worker()
        world.rebalance()
        for task in tasks[150:]:
            world.put(place, result(task))
        world.put(place, barrier(*[expected(task) for task in tasks]))
        world.sweep()
        (seal,) = oracle.measure(0, world.log.records[place])
        assert len(seal.groups) == 300 and all(group.live for group in seal.groups)
        assert {chunk.digest for chunk in world.log.records[SEALS][:1]} == {seal.digest()}
        assert world.group.committed[place] == 301
