"""What rollouts and synthesis come to: a hash of (group, execution) or of the seed decides it."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

from schemas.envelope import Producer, stamp
from schemas.identity import content_digest, variant_id
from schemas.pool import SeedSettled, Settlement, VariantVerified
from schemas.rollouts import GroupRequested, RolloutFinished, Slot
from schemas.seals import BoundarySeedSelected
from tests.simulation.schedule import CATEGORIES, definition

RUN = "run"


def dice(*parts: object) -> bytes:
    """32 numbers below 256 that follow from the parts."""
    return sha256("/".join(map(str, parts)).encode()).digest()


def result_of(request: GroupRequested, execution: str, salt: str = "") -> RolloutFinished:
    """A group's K slots: most live, some failed, a few impossible. salt: what an execution that differs differs by."""
    rolls = dice(request.group, salt)
    ability = dice(request.task)[0] % 5 if rolls[0] < 150 else rolls[1] % 5
    slots = tuple(_slot(request, ability, rolls[2 + 3 * (n % 10) : 5 + 3 * (n % 10)]) for n in range(request.k))
    event = RolloutFinished(
        group=request.group,
        execution=execution,
        epoch=request.epoch,
        step=request.step,
        task=request.task,
        purpose=request.purpose,
        category=request.category,
        k=request.k,
        turns_total=request.turns_total,
        slots=slots,
    )
    return stamp(event, run_id=RUN, occurred_at=1_000_000 + request.step, producer=Producer.ROLLOUT)


def _slot(request: GroupRequested, ability: int, rolls: bytes) -> Slot:
    total = request.turns_total
    if rolls[0] < 24:
        return Slot("failed", 0, total, (), 0, 0, 0, request.policy_version, "", "timeout")
    passed = {0: 0, 1: total}.get(ability, rolls[1] % (total + 1))
    outcomes = (True,) * passed + (False,) * (passed < total)
    slot = Slot("finished", passed, total, outcomes, 1, 2, 3, request.policy_version, "")
    return _impossible(slot, rolls[2]) if rolls[0] > 240 else slot


def _impossible(slot: Slot, roll: int) -> Slot:
    total = slot.turns_total
    changes: list[dict[str, Any]] = [
        {"turns_passed": total + 1},
        {"turns_passed": -1},
        {"turns_total": total + 1},
        {"tokens": -1},
        {"outcomes": (False, True)},
        {"outcomes": (True,) * (total + 1)},
        {"status": "well"},
        {"reason": "timeout"},
        {"status": "failed"},
        {"trajectory": "a" * 65},
        {"latency": -5},
    ]
    return replace(slot, **changes[roll % len(changes)])


def misshapen(result: RolloutFinished, roll: float) -> RolloutFinished:
    """A result that no barrier can take: another K, total, task, category, purpose, step or group."""
    other: list[dict[str, Any]] = [
        {"k": result.k + 1, "slots": (*result.slots, result.slots[0])},
        {"k": result.k + 1},
        {"turns_total": result.turns_total + 1},
        {"turns_total": 0},
        {"category": "other"},
        {"purpose": "fun"},
        {"purpose": "evaluate", "group": "e-" + result.group[:8]},
        {"step": result.step + 1},
        {"group": "g-" + result.group[:8]},
        {"group": "h-" + result.group[:8], "task": "nobody-knows"},
        {"k": 0, "slots": ()},
    ]
    return replace(result, **other[int(roll * len(other))])


def made_up(number: int, epoch: int, step: int) -> VariantVerified:
    """A variant that is not of a seed."""
    made = definition("", f"made-up-{number}", 1, CATEGORIES[0], "task-0")
    digest = content_digest(made)
    made = replace(made, task=variant_id("made-up", digest))
    event = VariantVerified("made-up", epoch, step, 0, made, digest)
    return stamp(event, run_id=RUN, occurred_at=5, producer=Producer.SYNTHESIS)


def synthesised(seed: BoundarySeedSelected, salt: str = "") -> list[Any]:
    """What an answer to a seed writes, in order: its variants and the settlement."""
    rolls = dice("synthesis", seed.seed, salt)
    count = rolls[0] % 3
    events: list[Any] = []
    for number in range(count):
        content = f"content-{rolls[1 + number] % 12}"
        made = definition("", content, 1 + rolls[4 + number] % 2, CATEGORIES[rolls[7] % 2], seed.task)
        digest = content_digest(made)
        made = replace(made, task=variant_id(seed.seed, digest))
        events.append(VariantVerified(seed.seed, seed.epoch, seed.step, seed.rank, made, digest))
    outcome = Settlement.DONE if count else Settlement.FAILED
    events.append(SeedSettled(0, seed.seed, seed.epoch, seed.step, outcome, count))
    return [stamp(event, run_id=RUN, occurred_at=5, producer=Producer.SYNTHESIS) for event in events]
