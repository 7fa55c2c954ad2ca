"""The log of a simulated run in which much goes wrong, as an archive.

The learner, measure and select are the real ones; what is around them dies, sleeps, answers late, twice, otherwise or
not at all (`tests.simulation`). The schedule was sought for what it holds: failed and impossible slots, groups that
nobody answered, second and late results, an expired seed, an operator's order, retired tasks that are probed and come
back, dead letters, alarms, and learners that another one overtook. What synthesis did is told beside it afterwards.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eventlog.reader import LogRecord
from schemas.envelope import Producer, stamp
from schemas.pool import SeedSettled, Settlement
from schemas.seals import BoundarySeedSelected
from schemas.synthesis import StageFinished, VariantRejected
from schemas.topics import Topic
from streams.archive.worker import keep_schemas
from tests.archives import seal
from tests.simulation.log import Place
from tests.simulation.outcomes import RUN
from tests.simulation.schedule import schedule_of
from tests.simulation.simulate import played
from tests.simulation.world import World

SEED = 487
FAULTS = 30
_WRITTEN_AT = 1_700_000_000_000


def write_disturbed(target: Path) -> None:
    """Plays the schedule and archives its log, one segment a partition."""
    world, _ = played(replace(schedule_of(SEED), codec=True, faults=FAULTS))
    _tell_synthesis(world)
    keep_schemas(target)
    for place, values in world.log.records.items():
        seal(target, *place, [_record(world, place, offset, value) for offset, value in enumerate(values)])


def _record(world: World, place: Place, offset: int, value: bytes) -> LogRecord:
    topic, partition = place
    event = world.wire.read(value)
    key = getattr(event, "topic" if topic is Topic.DEAD_LETTERS else "task", RUN)
    return LogRecord(topic.named("rods."), partition, offset, _WRITTEN_AT + offset, str(key).encode(), value, ())


def _tell_synthesis(world: World) -> None:
    """A critique for each variant; a seed without any was rejected. Every third stage is told twice."""
    settled: dict[str, SeedSettled] = {}
    for event in _events(world, (Topic.POOL, 0)):
        if isinstance(event, SeedSettled):
            settled.setdefault(event.seed, event)
    told = 0
    for partition in range(world.log.partitions):
        seeds = {e.seed: e for e in _events(world, (Topic.SEEDS, partition)) if isinstance(e, BoundarySeedSelected)}
        for seed in seeds.values():
            for event in _stages(seed, settled.get(seed.seed)):
                told += 1
                for _ in range(1 + (told % 3 == 0)):
                    world.put((Topic.SYNTHESIS, partition), event)


def _stages(seed: BoundarySeedSelected, settled: SeedSettled | None) -> Iterator[Any]:
    if settled is None or settled.outcome == Settlement.EXPIRED:
        return
    place = (seed.seed, seed.task, seed.epoch, seed.step)
    found: list[Any] = []
    for index in range(max(1, settled.variants)):
        ok = settled.outcome == Settlement.DONE
        found.append(StageFinished(*place, index, 0, "critique", 0, ok, "{}", (), 0, "rules"))
        if not ok:
            found.append(VariantRejected(*place, index, 0, "critique", "not coherent", (), 0, "rules"))
    for event in found:
        yield stamp(event, run_id=RUN, occurred_at=5, producer=Producer.SYNTHESIS)


def _events(world: World, place: Place) -> list[Any]:
    return [world.wire.read(value) for value in world.log.records[place]]
