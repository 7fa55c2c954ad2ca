"""A number of schedules on one broker, a few at a time, each held to its own log and to the undisturbed run."""

import asyncio
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.integration.faults.schedule import Action, Schedule, schedule
from tests.integration.faults.trial import TRIGGERS, Trial, run_trial
from tests.integration.faults.verdict import assert_right, decided

UNDISTURBED = Schedule(-1, (), 0.0, 0.0, 0.0)


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
        faults = "; ".join(map(str, self.plan.faults))
        if self.error or self.trial is None:
            return f"schedule {self.plan.seed} FAILED ({faults}): {self.error}"
        late = f", too late: {'; '.join(self.trial.unfired)}" if self.trial.unfired else ""
        seconds, deaths = round(self.trial.seconds), self.trial.deaths
        more = f", not asked for {self.unasked}" if self.unasked else ""
        return f"schedule {self.plan.seed} right in {seconds} s ({faults}{late}), deaths {deaths}{more}"


async def run_suite(broker: str, seeds: Iterable[int], jobs: int, keep: Path | None = None) -> AsyncIterator[Outcome]:
    """The outcomes as they come. keep: where the folders go of schedules that failed, or whose processes died without
    being killed."""
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        folder = Path(scratch)
        quiet = await run_trial(folder / "undisturbed", broker, UNDISTURBED)
        assert_right(quiet)
        events = {kind: quiet.seen[kind] for kind in TRIGGERS}
        room = asyncio.Semaphore(jobs)
        tasks = [asyncio.create_task(_one(room, folder, broker, schedule(seed, events), quiet)) for seed in seeds]
        for next_one in asyncio.as_completed(tasks):
            outcome = await next_one
            if (outcome.error or outcome.unasked) and keep is not None:
                shutil.copytree(folder / f"schedule-{outcome.plan.seed}", keep / f"schedule-{outcome.plan.seed}")
            yield outcome


async def _one(room: asyncio.Semaphore, folder: Path, broker: str, plan: Schedule, quiet: Trial) -> Outcome:
    trial: Trial | None = None
    async with room:
        try:
            trial = await run_trial(folder / f"schedule-{plan.seed}", broker, plan)
            assert_right(trial)
            assert decided(trial.log) == decided(quiet.log), "the decisions differ from the undisturbed run's"
        except Exception:  # noqa: BLE001 - a failed schedule is an outcome
            return Outcome(plan, trial, traceback.format_exc(limit=-6))
        return Outcome(plan, trial)
