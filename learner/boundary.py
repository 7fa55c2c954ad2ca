"""An epoch's boundary: its seeds settled, the cut fixed, the pool decided and materialised.

Each part asks the views first, so that a new generation finishes a boundary that the last one left half written.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from learner.errors import LearnerError
from learner.journal import Journal
from schemas.epochs import AlarmRaised
from schemas.pool import BoundaryOpened, PoolMaterialized, SeedSettled, Settlement
from schemas.rules import Rules
from streams.pool.decide import BoundaryDecision, decide_boundary
from streams.pool.evidence import Evidence
from streams.pool.materialise import write_pool

SELECTION_SECONDS = 300.0


async def close_epoch(journal: Journal, rules: Rules, epoch: int, last_step: int) -> None:
    """The boundary after an epoch's last step. Raises LearnerError where that step is not selected in time."""
    seals = journal.views.seals
    if not await journal.wait("selection", lambda: last_step in seals.selections, SELECTION_SECONDS):
        raise LearnerError(
            f"step {last_step} was not selected in {SELECTION_SECONDS:.0f} s; see that `rods streams work` is running"
        )
    if journal.views.pool.boundary is None:
        await _settle_seeds(journal, rules, last_seed_step(rules, last_step))
    await close_boundary(journal, rules, epoch, last_step, seals.selections[last_step].digest)


async def close_boundary(journal: Journal, rules: Rules, epoch: int, last_step: int, selection_digest: str) -> None:
    """Fixes the cut, decides, writes, and waits until the pool has taken it in."""
    views = journal.views
    if views.pool.boundary is None:
        included = last_seed_step(rules, last_step)
        opened = BoundaryOpened(journal.generation, epoch, last_step, included, selection_digest, rules.canonical())
        await journal.to_pool([opened])
    boundary, cut = views.pool.boundary, views.pool.cut
    if boundary is None or cut is None or boundary.epoch != epoch:
        raise LearnerError(f"the pool's log does not let the boundary of epoch {epoch} follow epoch {views.pool.epoch}")
    evidence = views.seals.evidence(epoch, boundary.last_step)
    decision = decide_boundary(cut, boundary, evidence, journal.generation)
    for alarm in alarms(decision, evidence, rules, boundary, journal.generation):
        await journal.to_epochs(alarm)
    await journal.to_pool(decision.events()[:-1])
    await journal.to_pool([_with_offsets(journal, decision.materialized)])


async def write_current_pool(journal: Journal, folder: Path) -> None:
    """The pool of the last boundary on disk, unless it is there."""
    pool = journal.views.pool
    if pool.materialized is not None:
        await asyncio.to_thread(write_pool, folder, pool.materialized, pool)


def last_seed_step(rules: Rules, last_step: int) -> int:
    """The last step whose seeds a boundary waits for and includes."""
    return max(0, last_step - rules.synthesis.lag_steps)


def alarms(
    decision: BoundaryDecision, evidence: Evidence, rules: Rules, boundary: BoundaryOpened, generation: int
) -> Sequence[AlarmRaised]:
    """Contradiction: derived facts came twice and differed. Unselected: variants of seeds that were never selected.
    Starvation: nothing comes in. Depletion: no task of the epoch was at the boundary. They never stop training."""
    raised = []
    if evidence.contradicted:
        detail = f"{evidence.contradicted} seals or selections say something else than the first of their kind"
        raised.append(("contradiction", detail))
    if decision.unselected:
        count = len(decision.unselected)
        raised.append(("unselected", f"passed over {count} variants of seeds that no selection names"))
    trained = boundary.epoch > 0 and rules.curriculum != "static"
    if trained and not decision.injected:
        waiting = len(decision.materialized.queue)
        raised.append(("starvation", f"nothing was injected after epoch {boundary.epoch}; {waiting} variants wait"))
    if trained and not any(group.boundary for group in evidence.groups.values()):
        raised.append(("depletion", f"no task of epoch {boundary.epoch} was at the boundary"))
    return [AlarmRaised(generation, kind, boundary.epoch, boundary.last_step, detail) for kind, detail in raised]


async def _settle_seeds(journal: Journal, rules: Rules, included: int) -> None:
    """Waits for every seed that the boundary includes; what is late expires."""
    views = journal.views
    seeds = views.seals.seeds(included)
    seconds = rules.synthesis.settle_seconds
    await journal.wait("synthesis", lambda: all(seed.seed in views.pool.settled for seed in seeds), seconds)
    closed = {seed.seed: selection for selection in views.seals.selections.values() for seed in selection.seeds}
    await journal.to_pool(
        SeedSettled(
            journal.generation, seed.seed, closed[seed.seed].epoch, closed[seed.seed].step, Settlement.EXPIRED, 0
        )
        for seed in seeds
        if seed.seed not in views.pool.settled
    )


def _with_offsets(journal: Journal, materialized: PoolMaterialized) -> PoolMaterialized:
    offsets = {"pool/0": journal.views.pool.next_offset, "seals/0": journal.views.seals.next_offset}
    return replace(materialized, offsets=offsets)
