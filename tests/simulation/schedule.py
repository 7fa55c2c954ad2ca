"""What a seed stands for: a world to run (rules, tasks, partitions) and what goes wrong in it."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

from schemas.rules import (
    LearnerRules,
    MeasureRules,
    PoolRules,
    RolloutRules,
    Rules,
    SelectRules,
    SynthesisRules,
)
from schemas.task import TaskDefinition, Turn

WORLDS = 48
CATEGORIES = ("base", "miss_func")


@dataclass(frozen=True, slots=True)
class Setting:
    """What decides, and so what two schedules must share to have the same digests."""

    rules: Rules
    partitions: int
    originals: tuple[TaskDefinition, ...]
    heldout: tuple[TaskDefinition, ...]
    small_chunks: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """A seeded run. exact: attempts are deterministic, no deadline passes and no seed expires, so that the digests are
    those of the undisturbed run. faults: how many things go wrong; fault_rate: how soon, per tick. retries: how often
    a producer's retry writes an event twice. codec: events travel as bytes. successor: at the end a fresh worker takes
    everything over."""

    seed: int
    world: int
    exact: bool
    faults: int
    fault_rate: float
    workers: int
    retries: float
    codec: bool
    successor: bool

    @property
    def setting(self) -> Setting:
        return setting_of(self.world)


def schedule_of(seed: int) -> Schedule:
    """The schedule of a seed."""
    rng = Random(f"schedule-{seed}")
    return Schedule(
        seed=seed,
        world=rng.randrange(WORLDS),
        exact=rng.random() < 0.4,
        faults=rng.choice((4, 8, 12, 20, 30)),
        fault_rate=rng.choice((0.01, 0.02, 0.04)),
        workers=rng.choice((1, 1, 2, 3)),
        retries=rng.choice((0.0, 0.02, 0.1)),
        codec=seed % 25 == 7,
        successor=rng.random() < 0.3,
    )


def undisturbed(world: int) -> Schedule:
    """Nothing goes wrong."""
    return Schedule(
        -1 - world, world, True, faults=0, fault_rate=0.0, workers=1, retries=0.0, codec=False, successor=False
    )


def definition(name: str, content: str, turns: int, category: str, parent: str | None = None) -> TaskDefinition:
    """A task; equal content makes equal tasks."""
    turn, state = Turn(("do",), ("f()",)), f'{{"is":"{content}"}}'
    return TaskDefinition(name, "workbench", category, "s", ("Files",), state, (turn,) * turns, parent)


@cache
def setting_of(world: int) -> Setting:
    """One of the worlds. Every number is drawn from a few that make rules meet each other soon."""
    rng = Random(f"world-{world}")

    def task(name: str) -> TaskDefinition:
        return definition(name, name, rng.choice((1, 2, 3)), rng.choice(CATEGORIES))

    originals = tuple(task(f"task-{n}") for n in range(rng.choice((3, 4, 5, 6))))
    return Setting(
        _rules(rng, world), rng.choice((1, 2, 2, 3)), originals, (task("held-0"),), small_chunks=rng.random() < 0.5
    )


def _rules(rng: Random, world: int) -> Rules:
    pick: Any = rng.choice
    return Rules(
        seed=world,
        epochs=pick((1, 2, 2, 3, 3)),
        curriculum=pick(("rods",) * 8 + ("random", "static")),
        measure=MeasureRules(window=pick((1, 1, 2)), min_variance=pick((Decimal("0"), Decimal("0.05")))),
        select=SelectRules(rank_by=pick(("phi", "variance")), quota=pick((1, 2)), cooldown_steps=pick((0, 1, 2))),
        pool=PoolRules(
            inject_share=pick((Decimal("0.2"), Decimal("0.5"), Decimal("1"))),
            p_max=pick((1, 2, 3)),
            patience=pick((1, 1, 2)),
            retire=pick((True, True, True, False)),
            protect_originals=pick((True, False)),
            probes_per_epoch=pick((0, 1, 2, 2)),
        ),
        synthesis=SynthesisRules(variants_per_seed=2, lag_steps=pick((0, 0, 1)), settle_seconds=30),
        rollout=RolloutRules(k=pick((2, 3, 4)), tasks_per_step=pick((2, 3, 4)), deadline_seconds=60),
        learner=LearnerRules(evaluate_tasks=pick((0, 0, 1)), evaluate_k=2),
    )
