"""Seeded schedules, each held to a plain fold of its log; and broken rules, each of which they find."""

import ast
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from schemas.pool import TaskInjected, TaskRetired
from schemas.rollouts import RolloutFinished
from schemas.seals import PartitionSealed, SelectionClosed
from schemas.topics import Topic
from tests.simulation import oracle, pool_oracle
from tests.simulation.__main__ import check
from tests.simulation.log import SEALS
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.schedule import schedule_of, undisturbed
from tests.simulation.simulate import played, simulate, undisturbed_digests
from tests.simulation.world import World

SCHEDULES = range(500)


def test_what_stands_in_the_final_log_is_what_a_plain_fold_of_it_says() -> None:
    assert check(SCHEDULES) == ""


@pytest.mark.slow
def test_what_stands_in_the_logs_of_more_schedules_is_so_too() -> None:
    assert check(range(SCHEDULES.stop, 2000)) == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_broken_rule_is_found(mutant: Mutant) -> None:
    assert "fails" in check(range(mutant.first_seed, mutant.first_seed + 400), mutant.name)


def test_a_seed_is_one_schedule() -> None:
    first, again = (played(schedule_of(11))[0] for _ in range(2))
    assert first.log.records == again.log.records and first.now == again.now


def test_bytes_on_the_wire_change_nothing() -> None:
    schedule = schedule_of(7)
    assert schedule.codec and all(isinstance(value, bytes) for value in played(schedule)[0].log.records[SEALS])


def test_an_undisturbed_run_writes_every_fact_once() -> None:
    for world in range(8):
        log = played(undisturbed(world))[0].log
        for place in (SEALS, (Topic.EPOCHS, 0)):
            facts = Counter((event.KIND, event.natural_key) for event in log.records[place])
            assert set(facts.values()) == {1}


def test_worlds_differ() -> None:
    assert len({undisturbed_digests(world) for world in range(12)}) == 12


@pytest.mark.parametrize("module", [oracle, pool_oracle])
def test_the_oracle_shares_nothing_but_event_types(module: ModuleType) -> None:
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    allowed = {"schemas.epochs", "schemas.pool", "schemas.rollouts", "tests.simulation.oracle"}
    assert {module for module in modules if module.split(".")[0] in PACKAGES} <= allowed


PACKAGES = ("schemas", "streams", "learner", "producers", "rods", "tests")


def test_schedules_reach_what_they_are_for() -> None:
    """Otherwise the rules would hold in worlds where nothing happens."""
    reached: Counter[str] = Counter()
    for seed in range(150):
        reached += _reached(played(schedule_of(seed))[0])
    never = [name for name in REACHED if not reached[name]]
    assert never == []


REACHED = (
    "late",
    "duplicate",
    "refused",
    "missing",
    "impossible",
    "failed",
    "chunks",
    "sealed twice",
    "selected twice",
    "nothing selected",
    "seeds",
    "other results",
    "learners",
    "injected",
    "returned",
    "retired burn_in",
    "retired drift_low",
    "retired drift_high",
    "retired operator",
    "retired pruning",
    "expired",
    "refused commit",
)


def _reached(world: World) -> Counter[str]:
    found: Counter[str] = Counter(world.seen)
    events: dict[Any, list[Any]] = {
        place: [event for value in values if (event := world.wire.read(value)) is not None]
        for place, values in world.log.records.items()
    }
    seals = [event for event in events[SEALS] if isinstance(event, PartitionSealed)]
    closed = [event for event in events[SEALS] if isinstance(event, SelectionClosed)]
    found["sealed twice"] += len(seals) - len({seal.natural_key for seal in seals})
    found["selected twice"] += len(closed) - len({event.step for event in closed})
    found["nothing selected"] += sum(not event.seeds for event in closed)
    found["seeds"] += sum(len(event.seeds) for event in closed)
    for seal in seals:
        found.update({"late": seal.late, "duplicate": seal.duplicate, "refused": seal.refused})
        found["chunks"] += seal.chunks > 1
        for group in seal.groups:
            found["missing"] += not group.execution
            found["impossible"] += "impossible" in group.reasons
            found["failed"] += "timeout" in group.reasons
    for place, records in events.items():
        if place[0] is Topic.ROLLOUTS:
            results = {(e.group, e.slots) for e in records if isinstance(e, RolloutFinished)}
            found["other results"] += len(results) - len({group for group, _ in results})
    for event in events[Topic.POOL, 0]:
        if isinstance(event, TaskInjected):
            found["returned" if event.returned else "injected"] += 1
        elif isinstance(event, TaskRetired):
            found[f"retired {event.rule}"] += 1
        else:
            found["expired"] += getattr(event, "outcome", "") == "expired"
    found["learners"] += sum(event.KIND == "LearnerStarted" for event in events[Topic.EPOCHS, 0]) > 1
    return found


def test_a_schedule_is_replayed_with_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    simulate(3, trace=True)
    lines = capsys.readouterr().out.splitlines()
    assert any("PartitionSealed" in line for line in lines) and any("starts" in line for line in lines)
