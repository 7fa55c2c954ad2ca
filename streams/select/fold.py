"""Select: a pure fold over `rods.seals`, which holds its own SelectionClosed too.

When the N seals of the step after the last closed one are complete, it proposes a SelectionClosed. A step is closed
once a SelectionClosed of it is read back: the first counts, so that two workers that propose agree, and its seeds
follow from what the log holds. Steps close one at a time, so any interleaving of partitions gives the same selections.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from schemas.envelope import Producer, derive
from schemas.identity import digest
from schemas.rules import Rules
from schemas.seals import BoundarySeedSelected, PartitionSealed, SelectedSeed, SelectionClosed
from schemas.topics import Topic, partition_of
from streams.errors import OffsetGapError, UnassembledSealError
from streams.measure.barrier import parsed_rules
from streams.measure.exact import parse, shown
from streams.seals.assembly import Assembly, assemble, is_complete
from streams.select.select import select


@dataclass(frozen=True, slots=True)
class SelectState:
    """closed, digest: of the last closed step, 0 and empty before the first.
    proposed: of the step after it, once its seals are complete.
    seals: by step and partition, of steps not yet closed.
    last: task to the step it was last a seed.

    duplicate: second seals and selections.
    alarms: of those, the ones that say something else, and selections that no seal supports; they change nothing.
    """

    next_offset: int = 0
    closed: int = 0
    digest: str = ""
    proposed: SelectionClosed | None = None
    assembly: Assembly = field(default_factory=Assembly)
    seals: Mapping[int, Mapping[int, PartitionSealed]] = field(default_factory=dict)
    last: Mapping[str, int] = field(default_factory=dict)
    duplicate: int = 0
    alarms: int = 0


class PlacedSeed(NamedTuple):
    """A seed and its partition of `rods.seeds`."""

    partition: int
    event: BoundarySeedSelected


@dataclass(frozen=True, slots=True)
class Selected:
    """What follows from an event: a selection to write to `rods.seals`, or the seeds of one that was read there."""

    state: SelectState
    proposed: SelectionClosed | None = None
    seeds: tuple[PlacedSeed, ...] = ()


def evolve(state: SelectState, offset: int, event: Any) -> Selected:
    """Takes the event at `offset`. Offsets below the next one change nothing. Raises OffsetGapError."""
    if offset < state.next_offset:
        return Selected(state)
    state = _advanced(state, offset)
    match event:
        case PartitionSealed():
            return _sealed(state, event)
        case SelectionClosed():
            return _closed(state, event)
        case _:
            return Selected(replace(state, alarms=state.alarms + 1))


def skip(state: SelectState, offset: int) -> SelectState:
    """Passes the undecodable message at `offset`."""
    return state if offset < state.next_offset else _advanced(state, offset)


def _advanced(state: SelectState, offset: int) -> SelectState:
    if offset > state.next_offset:
        raise OffsetGapError(Topic.SEALS, 0, state.next_offset, offset)
    return replace(state, next_offset=offset + 1)


def _sealed(state: SelectState, chunk: PartitionSealed) -> Selected:
    known = state.seals.get(chunk.step, {}).get(chunk.partition)
    if chunk.step <= state.closed or known is not None:
        differs = known is not None and known.digest != chunk.digest
        return Selected(_repeated(state, differs=differs))
    assembly, seal = assemble(state.assembly, chunk)
    state = replace(state, assembly=assembly)
    if seal is None:
        return Selected(state)
    step = {**state.seals.get(seal.step, {}), seal.partition: replace(seal, state=())}
    return _propose(replace(state, seals={**state.seals, seal.step: step}))


def _repeated(state: SelectState, *, differs: bool) -> SelectState:
    return replace(state, duplicate=state.duplicate + 1, alarms=state.alarms + differs)


def _propose(state: SelectState) -> Selected:
    """Proposes the next step's selection once its seals are complete."""
    seals = state.seals.get(state.closed + 1, {})
    if state.proposed is not None or not is_complete(seals):
        return Selected(state)
    proposed = _selection(state, [seals[partition] for partition in range(seals[0].partitions)])
    return Selected(replace(state, proposed=proposed), proposed=proposed)


def _selection(state: SelectState, seals: list[PartitionSealed]) -> SelectionClosed:
    """The selection of complete seals in partition order, derived from partition 0's: every worker writes the same."""
    first = seals[0]
    rules = _rules(first)
    groups = [group for seal in seals for group in seal.groups]
    seeds = select(groups, rules, first.epoch, first.step, state.last)
    closed = SelectionClosed(
        epoch=first.epoch,
        step=first.step,
        seeds=seeds,
        quota=rules.select.quota,
        pool_offset=max([seal.pool_offset for seal in seals]),
        digest=selection_digest(state.digest, first.epoch, first.step, rules.select.quota, seeds),
    )
    return derive(closed, first.envelope, Producer.SELECT)


def selection_digest(previous: str, epoch: int, step: int, quota: int, seeds: tuple[SelectedSeed, ...]) -> str:
    """sha256, hexadecimal, over the previous digest and the step's seeds in order: a chain, whatever N is."""
    content = [[s.seed, s.task, s.category, s.phi, s.variance, s.rank, s.evidence] for s in seeds]
    return digest([previous, epoch, step, quota, content])


def _rules(seal: PartitionSealed) -> Rules:
    rules = parsed_rules(seal.rules)
    if rules is None:
        raise UnassembledSealError(f"the rules in the seal of step {seal.step} do not parse")
    return rules


def _closed(state: SelectState, event: SelectionClosed) -> Selected:
    """Takes a selection read from the log; the first of the open step counts, also where it is not the proposed one."""
    if event.step <= state.closed:
        return Selected(_repeated(state, differs=event.step == state.closed and event.digest != state.digest))
    if state.proposed is None or event.step != state.proposed.step or not readable(event):
        return Selected(replace(state, alarms=state.alarms + 1))
    seal = state.seals[event.step][0]
    closed = replace(
        state,
        closed=event.step,
        digest=event.digest,
        proposed=None,
        seals={step: seals for step, seals in state.seals.items() if step > event.step},
        last={**state.last, **{seed.task: event.step for seed in event.seeds}},
        alarms=state.alarms + (event.digest != state.proposed.digest),
    )
    return replace(_propose(closed), seeds=_seeds(event, seal))


def readable(event: SelectionClosed) -> bool:
    """Whether the figures of every seed parse."""
    try:
        return all((parse(seed.phi), parse(seed.variance)) for seed in event.seeds)
    except ValueError:
        return False


def _seeds(event: SelectionClosed, seal: PartitionSealed) -> tuple[PlacedSeed, ...]:
    return tuple(
        [
            PlacedSeed(partition_of(seed.task, seal.partitions), _boundary_seed(event, seed, seal.rules))
            for seed in event.seeds
        ]
    )


def _boundary_seed(event: SelectionClosed, seed: SelectedSeed, rules: str) -> BoundarySeedSelected:
    selected = BoundarySeedSelected(
        epoch=event.epoch,
        step=event.step,
        seed=seed.seed,
        task=seed.task,
        category=seed.category,
        phi=shown(parse(seed.phi)),
        variance=shown(parse(seed.variance)),
        rank=seed.rank,
        quota=event.quota,
        evidence=seed.evidence,
        rules=rules,
        pool_offset=event.pool_offset,
    )
    return derive(selected, event.envelope, Producer.SELECT, correlation_id=seed.seed)
