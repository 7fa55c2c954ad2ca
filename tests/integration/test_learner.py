"""The learner's loop on a live broker: a whole run, learners that die anywhere in it, and learners that meet."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from learner.controller import Learner, RunProvenance
from learner.engine import StepMetrics
from learner.errors import LearnerError, SupersededError
from learner.log import LearnerLog, Write
from learner.samples import StepBatch
from learner.trainer import Published, ScriptedTrainer, Trainer
from rods.brokers.embedded import create_topics
from schemas.epochs import AlarmRaised, EpochClosed, LearnerStarted, PolicyEvaluated, StepClosed, StepOpened
from schemas.pool import RetirementRule, SeedSettled, Settlement, TaskInjected, TaskProbed, TaskRetired
from schemas.rollouts import GroupRequested
from schemas.rules import LearnerRules, PoolRules, RolloutRules, Rules, SelectRules, SynthesisRules
from schemas.topics import Topic
from tests.integration.in_process import Services, events_of, original, originals, pool_states
from tests.integration.live_broker import LiveBrokers

N = 2
EPOCHS = 3
PROVENANCE = RunProvenance("", {}, "", "", "")


def rules(settle: float = 240.0, epochs: int = EPOCHS, evaluated: int = 2) -> Rules:
    return Rules(
        epochs=epochs,
        rollout=RolloutRules(k=4, tasks_per_step=5, deadline_seconds=240.0),
        select=SelectRules(quota=2),
        pool=PoolRules(inject_share="0.25", protect_originals=False),
        synthesis=SynthesisRules(settle_seconds=settle, lag_steps=1),
        learner=LearnerRules(evaluate_tasks=evaluated, evaluate_k=2),
    )


class DiedError(Exception):
    """A learner that stops between two writes."""


class MortalLog(LearnerLog):
    """Writes up to and including the nth event of a kind, and dies."""

    dies_at: tuple[str, int] | None = None

    async def write(self, writes: Iterable[Write]) -> list[int]:
        if self.dies_at is None:
            return await super().write(writes)
        kind, left = self.dies_at
        allowed: list[Write] = []
        for write in writes:
            allowed.append(write)
            left -= kind == write.event.KIND
            if left == 0:
                await super().write(allowed)
                raise DiedError
        self.dies_at = (kind, left)
        return await super().write(allowed)


def microseconds() -> int:
    return time.time_ns() // 1000


def learner(
    broker: str,
    prefix: str,
    pools: Path,
    chosen: Rules,
    *,
    nonce: str = "one",
    run: str = "run",
    dies_at: tuple[str, int] | None = None,
    trainer: Trainer | None = None,
) -> Learner:
    log = MortalLog(broker, prefix, N, run, microseconds)
    log.dies_at = dies_at
    heldout = [original(f"held-{number}") for number in range(3)]
    return Learner(log, chosen, trainer or ScriptedTrainer(), PROVENANCE, originals(), heldout, pools, nonce)


@pytest.fixture(scope="module")
def broker(live: LiveBrokers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with live.serve(tmp_path_factory.mktemp("broker")) as served:
        yield served.address


async def digests(broker: str, prefix: str) -> list[str]:
    """The digest of each epoch's pool."""
    found: dict[int, str] = {}
    for state in await pool_states(broker, prefix):
        if state.materialized is not None:
            found[state.epoch] = state.digest
    return [found[epoch] for epoch in sorted(found)]


def of(kind: type[Any], events: Iterable[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


_whole_run: list[str] = []


async def undisturbed(broker: str, pools: Path) -> list[str]:
    """The digests of a run that nothing disturbs, made once."""
    if not _whole_run:
        await create_topics(broker, "whole.", N)
        async with Services(broker, "whole.", N).running():
            await learner(broker, "whole.", pools, rules(), run="whole").run()
        _whole_run.extend(await digests(broker, "whole."))
    return _whole_run


async def test_a_run_injects_retires_probes_evaluates_and_closes_every_epoch(broker: str, tmp_path: Path) -> None:
    assert len(await undisturbed(broker, tmp_path)) == EPOCHS + 1
    epochs, pool = await events_of(broker, "whole.", Topic.EPOCHS), await events_of(broker, "whole.", Topic.POOL)
    assert [event.epoch for event in of(EpochClosed, epochs)] == [1, 2, 3]
    assert len(of(PolicyEvaluated, epochs)) == EPOCHS + 1
    assert len(of(StepClosed, epochs)) == len(of(StepOpened, epochs))
    assert all(event.missing == 0 for event in of(StepClosed, epochs))
    assert {event.epoch for event in of(TaskInjected, pool)} >= {1, 2}
    assert RetirementRule.DRIFT_HIGH in {event.rule for event in of(TaskRetired, pool)}
    assert of(TaskProbed, pool)
    assert all(event.outcome == Settlement.DONE for event in of(SeedSettled, pool))


async def test_evaluations_are_as_seldom_as_asked_and_the_last_epoch_has_one(broker: str, tmp_path: Path) -> None:
    prefix, chosen = "seldom.", rules(epochs=3)
    await create_topics(broker, prefix, N)
    seldom = chosen.model_copy(update={"learner": LearnerRules(evaluate_tasks=2, evaluate_k=2, evaluate_every=2)})
    async with Services(broker, prefix, N).running():
        await learner(broker, prefix, tmp_path, seldom).run()
    evaluations = of(PolicyEvaluated, await events_of(broker, prefix, Topic.EPOCHS))
    assert [(event.epoch, event.version, len(event.results)) for event in evaluations] == [
        (0, 0, 2),
        (2, 2, 2),
        (3, 3, 2),
    ]


@pytest.mark.parametrize(
    ("kind", "nth"),
    [
        ("GroupRequested", 9),
        ("TaskRetired", 2),
        ("PoolMaterialized", 2),
    ],
)
async def test_a_learner_that_dies_anywhere_leaves_the_next_one_with_the_same_pools(
    broker: str, tmp_path: Path, kind: str, nth: int
) -> None:
    wanted = await undisturbed(broker, tmp_path)
    prefix = f"{kind}-{nth}.".lower()
    await create_topics(broker, prefix, N)
    async with Services(broker, prefix, N).running():
        with pytest.raises(DiedError):
            await learner(broker, prefix, tmp_path, rules(), dies_at=(kind, nth)).run()
        await learner(broker, prefix, tmp_path, rules(), nonce="two").run()
    assert await digests(broker, prefix) == wanted
    epochs = await events_of(broker, prefix, Topic.EPOCHS)
    assert [event.generation for event in of(LearnerStarted, epochs)] == [1, 2]
    written = {path.name.split("-g")[0] for path in tmp_path.glob("*.parquet")}
    assert {f"pool-00000{epoch}" for epoch in range(EPOCHS + 1)} <= written


async def test_an_epoch_keeps_the_rules_it_was_opened_with(broker: str, tmp_path: Path) -> None:
    prefix, first = "rules.", rules(epochs=1)
    await create_topics(broker, prefix, N)
    other = first.model_copy(update={"rollout": RolloutRules(k=2, tasks_per_step=3), "seed": 9})
    async with Services(broker, prefix, N).running():
        with pytest.raises(DiedError):
            await learner(broker, prefix, tmp_path, first, dies_at=("StepOpened", 1)).run()
        await learner(broker, prefix, tmp_path, other, nonce="two").run()
    steps = of(StepOpened, await events_of(broker, prefix, Topic.EPOCHS))
    assert [(len(step.groups), step.k) for step in steps] == [(5, 4), (5, 4), (2, 4)]
    boundaries = [state.boundary for state in await pool_states(broker, prefix) if state.boundary is not None]
    assert Rules.parse(boundaries[-1].rules) == first


async def test_a_second_learner_takes_over_and_the_first_one_stops(broker: str, tmp_path: Path) -> None:
    wanted, prefix = await undisturbed(broker, tmp_path), "two."
    await create_topics(broker, prefix, N)
    services = Services(broker, prefix, N, answers=lambda request: request.generation > 1)
    async with services.running():
        first = asyncio.create_task(learner(broker, prefix, tmp_path, rules(), nonce="first").run())
        while not of(GroupRequested, await events_of(broker, prefix, Topic.ASSIGNMENTS)):
            await asyncio.sleep(0.05)
        second = asyncio.create_task(learner(broker, prefix, tmp_path, rules(), nonce="second").run())
        with pytest.raises(SupersededError, match="another learner took over the run from generation 1"):
            await first
        await second
    assert await digests(broker, prefix) == wanted


async def test_a_prefix_that_holds_another_run_is_refused(broker: str, tmp_path: Path) -> None:
    await undisturbed(broker, tmp_path)
    before = await events_of(broker, "whole.", Topic.EPOCHS)
    with pytest.raises(LearnerError, match=r"the prefix whole\. hold the run whole; take another prefix"):
        await learner(broker, "whole.", tmp_path, rules(), run="other").run()
    assert await events_of(broker, "whole.", Topic.EPOCHS) == before


async def test_another_number_of_partitions_is_refused(broker: str, tmp_path: Path) -> None:
    await undisturbed(broker, tmp_path)
    log = LearnerLog(broker, "whole.", 1, "whole", microseconds)
    wrong = Learner(log, rules(), ScriptedTrainer(), PROVENANCE, originals(), [], tmp_path, "n")
    with pytest.raises(LearnerError, match="this run has 2 partitions, which never changes"):
        await wrong.run()


async def test_a_seed_that_nobody_settles_expires_and_the_run_goes_on(broker: str, tmp_path: Path) -> None:
    prefix = "expired."
    await create_topics(broker, prefix, N)
    services = Services(broker, prefix, N, synthesises=False)
    async with services.running():
        await learner(broker, prefix, tmp_path, rules(settle=0.5, epochs=1)).run()
    pool = await events_of(broker, prefix, Topic.POOL)
    assert {event.outcome for event in of(SeedSettled, pool)} == {Settlement.EXPIRED}
    assert not of(TaskInjected, pool)
    alarms = of(AlarmRaised, await events_of(broker, prefix, Topic.EPOCHS))
    assert [(alarm.kind, alarm.epoch) for alarm in alarms] == [("starvation", 1)]


class CountingTrainer:
    """A trainer with weights and trajectories, but no model."""

    by_step = True
    needs_trajectories = True

    def __init__(self) -> None:
        self.trained: list[StepBatch] = []
        self.saved: set[int] = set()

    async def train(self, batch: StepBatch) -> StepMetrics | None:
        self.trained.append(batch)
        return None

    async def publish(self, version: int, generation: int) -> Published:
        return Published(f"policy-{version}-g{generation}", "")

    async def save(self, version: int, generation: int, progress: dict[str, Any]) -> None:
        del version, generation
        self.saved.add(progress["step"])

    async def restore(self, step: int) -> int | None:
        return max((saved for saved in self.saved if saved <= step), default=None)


async def test_every_attempt_of_a_group_with_variance_is_trained_on(broker: str, tmp_path: Path) -> None:
    prefix, trainer = "trained.", CountingTrainer()
    await create_topics(broker, prefix, N)
    async with Services(broker, prefix, N, trajectories=True).running():
        with pytest.raises(DiedError):
            await learner(
                broker, prefix, tmp_path, rules(epochs=1), trainer=trainer, dies_at=("PolicyPublished", 3)
            ).run()
        await learner(broker, prefix, tmp_path, rules(epochs=1), nonce="two", trainer=trainer).run()
    steps = of(StepClosed, await events_of(broker, prefix, Topic.EPOCHS))
    assert [(step.step, step.unmatched, step.stale) for step in steps] == [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
    assert sum(step.trained for step in steps) == 6 and sum(step.flat for step in steps) == 6
    assert [step.policy_version for step in steps] == [0, 1, 2]
    again = trainer.trained
    assert [len(batch.samples) for batch in again] == [4 * batch.trained for batch in again]
    assert again[1].samples == again[2].samples, "the step that was cut short is trained again on the same batch"


async def test_a_step_whose_checkpoint_is_gone_stops_the_next_learner(broker: str, tmp_path: Path) -> None:
    prefix, trainer = "gone.", CountingTrainer()
    await create_topics(broker, prefix, N)
    async with Services(broker, prefix, N, trajectories=True).running():
        with pytest.raises(DiedError):
            await learner(broker, prefix, tmp_path, rules(), trainer=trainer, dies_at=("StepClosed", 2)).run()
        trainer.saved.discard(2)
        with pytest.raises(LearnerError, match="there is no checkpoint of step 2"):
            await learner(broker, prefix, tmp_path, rules(), nonce="two", trainer=trainer).run()
