"""The pool of an epoch recomputed from its log: the same fold and the same decisions. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from schemas.pool import BoundaryOpened, PoolMaterialized
from streams.pool.decide import decide_boundary
from streams.pool.evidence import SealedSteps
from streams.pool.fold import evolve, skip
from streams.pool.state import PoolState


@dataclass(frozen=True, slots=True)
class ReplayedPool:
    """A boundary as the log records it and as it is recomputed. state: the pool after it."""

    recorded: PoolMaterialized
    recomputed: PoolMaterialized
    state: PoolState

    @property
    def epoch(self) -> int:
        return self.recorded.epoch

    @property
    def agrees(self) -> bool:
        """Whether the recomputed pool is the recorded one, and what the recorded decisions lead to."""
        led_to = tuple(sorted(self.state.members))
        return self.recorded.digest == self.recomputed.digest and led_to == self.recorded.members

    def header(self) -> dict[str, Any]:
        """The pool in one JSON object; keys are stable."""
        return {
            "epoch": self.epoch,
            "version": self.recorded.version,
            "digest": self.recorded.digest,
            "recomputed_digest": self.recomputed.digest,
            "agrees": self.agrees,
            "members": len(self.recorded.members),
            "originals": sum(member.original for member in self.state.members.values()),
            "queue": len(self.recorded.queue),
            "retired": len(self.state.retired),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A JSON object per member, then per queued variant."""
        for task in self.recorded.members:
            yield self._row(task, "member")
        for task in self.recorded.queue:
            yield self._row(task, "queued")

    def lines(self) -> Iterator[str]:
        """The same for a person."""
        head = self.header()
        verdict = "agrees with the log" if self.agrees else f"DIFFERS: recomputed {self.recomputed.digest}"
        yield f"epoch {head['epoch']}  version {head['version']}  digest {head['digest']} ({verdict})"
        yield f"{head['members']} members ({head['originals']} original), {head['queue']} queued"
        for row in self.rows():
            yield f"{row['state']:<7} {row['task']}  {row['category']}  {row['parent'] or 'original'}"

    def _row(self, task: str, state: str) -> dict[str, Any]:
        """Of a task that the log does not define, and that a recorded pool names all the same, nothing is known."""
        definition, member = self.state.definitions.get(task), self.state.members.get(task)
        return {
            "task": task,
            "state": state,
            "category": definition.category if definition else "",
            "turns": definition.turns_total if definition else 0,
            "parent": definition.parent if definition else None,
            "since": member.since if member else None,
        }


def pool_at(
    pool: Iterable[tuple[int, Any]],
    seals: Callable[[BoundaryOpened], Iterable[tuple[int, Any]]],
    epoch: int,
    *,
    whole: bool,
) -> ReplayedPool | None:
    """The pool after an epoch, from the events of `rods.pool` with their offsets (None: no event) up to there; None
    where the log does not close that boundary. Only this boundary is decided again, over the seals and selections that
    are asked for once: all of them, or, unless `whole`, those of the epoch, which do not tell what was selected before.
    Raises ValueError where they are not those that the boundary names."""
    state, decided = PoolState(), None
    for offset, event in pool:
        if event is None:
            state = skip(state, offset)
            continue
        state = evolve(state, offset, event)
        if isinstance(event, BoundaryOpened) and event.epoch == epoch and state.boundary is event and state.cut:
            evidence = _read(seals(event) if epoch else ()).evidence(epoch, event.last_step)
            if epoch and not whole:
                evidence = replace(evidence, selected=None)
            decided = decide_boundary(state.cut, event, evidence, event.generation)
        if decided is not None and isinstance(event, PoolMaterialized) and state.materialized is event:
            return ReplayedPool(event, decided.materialized, state)
    return None


def _read(seals: Iterable[tuple[int, Any]]) -> SealedSteps:
    """A log that begins with the first step of the given events, and keeps the seals of its last epoch."""
    log = SealedSteps()
    for offset, event in seals:
        if event is not None:
            log.closed = log.closed or event.step - 1
            closed = log.closed
            log.evolve(offset, event)
            if log.closed > closed:
                log.forget_before(log.steps[log.closed].epoch, log.closed)
    return log
