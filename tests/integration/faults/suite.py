"""A number of schedules on one broker, a few at a time, each held to its own log and to the undisturbed run."""

import asyncio
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.integration.faults.schedule import HELD_BACK, HOLD_BACK, Action, Schedule, schedule
from tests.integration.faults.trial import TRIGGERS, Trial, TrialError, run_trial
from tests.integration.faults.verdict import assert_right, decided, honest_late

TRIES = 6
"""How often a schedule is run, until each of its faults has found the run alive: one takes a few seconds, and a loaded
machine may show its log too late."""
UNDISTURBED = Schedule(-1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A schedule's end. error: why it failed; empty where it did not."""

    plan: Schedule
    trial: Trial | None
    error: str = ""

    @property
    def unasked(self) -> dict[str, int]:
        """How often each process died without being killed, or superseded."""
        if self.trial is None:
            return {}
        fired = [fault for fault in self.plan.faults if str(fault) in self.trial.fired]
        asked = Counter(fault.process for fault in fired if fault.action is Action.KILL)
        asked["learner"] += sum(fault.action is Action.USURP for fault in fired)
        return dict(Counter(self.trial.deaths) - asked)

    def __str__(self) -> str:
        if self.error or self.trial is None:
            return f"{self.plan} FAILED: {self.error}"
        more = f", not asked for {self.unasked}" if self.unasked else ""
        return f"{self.plan} right in {round(self.trial.seconds)} s, deaths {self.trial.deaths}{more}"


def missed(outcomes: Sequence[Outcome]) -> set[str]:
    """The kinds of fault that some of the schedules planned and that struck in none."""
    struck = {blow for outcome in outcomes if outcome.trial for blow, count in outcome.trial.struck.items() if count}
    return {blow for outcome in outcomes for blow in outcome.plan.blows} - struck


async def run_suite(broker: str, seeds: Iterable[int], jobs: int, keep: Path | None = None) -> AsyncIterator[Outcome]:
    """The outcomes as they come: of `HELD_BACK` and of the schedules.

    keep: where the folders go of those that failed, or whose processes died without being killed.
    """
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        folder = Path(scratch)
        quiet = await run_trial(folder / "undisturbed", broker, UNDISTURBED)
        assert_right(quiet)
        events = {kind: quiet.seen[kind] for kind in TRIGGERS}
        room = asyncio.Semaphore(jobs)
        plans = [HELD_BACK, *(schedule(seed, events) for seed in seeds)]
        tasks = [asyncio.create_task(_one(room, folder, broker, plan, quiet)) for plan in plans]
        for next_one in asyncio.as_completed(tasks):
            outcome = await next_one
            if (outcome.error or outcome.unasked) and keep is not None:
                shutil.copytree(folder / f"schedule-{outcome.plan.seed}", keep / f"schedule-{outcome.plan.seed}")
            yield outcome


async def _one(room: asyncio.Semaphore, folder: Path, broker: str, plan: Schedule, quiet: Trial) -> Outcome:
    trial: Trial | None = None
    async with room:
        try:
            for _ in range(TRIES):
                shutil.rmtree(folder / f"schedule-{plan.seed}", ignore_errors=True)
                trial = await run_trial(folder / f"schedule-{plan.seed}", broker, plan)
                await asyncio.to_thread(_judge, plan, trial, quiet)
                if not trial.unfired:
                    return Outcome(plan, trial)
            raise TrialError(f"{TRIES} times too late for some faults: {trial.unfired if trial else ''}")
        except Exception:  # noqa: BLE001 - a failed schedule is an outcome
            return Outcome(plan, trial, traceback.format_exc(limit=-6))


def _judge(plan: Schedule, trial: Trial, quiet: Trial) -> None:
    """In a thread, since the other runs are watched meanwhile."""
    assert_right(trial)
    trial.struck[HOLD_BACK] = len(honest_late(trial.log))
    if not plan.held:
        assert decided(trial.log) == decided(quiet.log), "the decisions differ from the undisturbed run's"
