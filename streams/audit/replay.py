"""Replay: every decision of a run recomputed from its facts, under the settings that the log records, and compared.

    rods.rollouts --measure fold, a process a partition--> seals      == recorded seals, by sha256 and field by field
    recorded seals --select fold--> selections, seeds                 == recorded ones
    rods.pool + recorded seals --decide_boundary--> pool decisions    == recorded ones, and the chain of digests

Each fold reads what is recorded, so that the first divergence is where a decision does not follow from its causes, and
not one of its consequences.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.seals import BoundarySeedSelected, PartitionSealed
from schemas.topics import Topic, partition_of
from streams.audit.collector import uncollected
from streams.audit.compare.divergence import ABSENT, Divergence, Stage, difference, first_of, shown
from streams.audit.compare.limits import Failures, Limit, LimitName, Provenance, limits_of
from streams.audit.compare.settings import settings_divergences
from streams.audit.load.epochs import RunFacts, run_facts
from streams.audit.load.shared_work import shared
from streams.audit.load.source import LogSource, topic_events
from streams.audit.recompute.boundaries import Boundary, BoundaryPass
from streams.audit.recompute.measure import MeasuredPartition, MeasureJob, SealKey, evidence_of, header_of, seals_at
from streams.audit.recompute.select import RecordedSeal, SealedPass
from streams.audit.recompute.trajectories import Attempts

_IN_PROCESS_RECORDS = 20_000


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """to_epoch: the last epoch; None: all.
    task: only what concerns it.
    jobs: processes.
    views: whether TaskMeasured, which no fold reads, are compared too.
    """

    to_epoch: int | None = None
    task: str = ""
    jobs: int = os.cpu_count() or 1
    views: bool = True


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What was compared."""

    groups: int
    attempts: int
    measurements: int
    seals: int
    selections: int
    seeds: int
    boundaries: int


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """divergences: in the order of cause and effect.
    digests: epoch to the recomputed pool's, None where its evidence is not in the log.
    open_barriers: at the end of the log, not answered yet.
    """

    run_id: str
    counts: Recomputed
    divergences: tuple[Divergence, ...]
    limits: tuple[Limit, ...]
    digests: dict[int, str | None]
    open_barriers: int

    @property
    def agrees(self) -> bool:
        return not self.divergences

    @property
    def first(self) -> Divergence | None:
        return first_of(self.divergences)


@uncollected()
def replay(source: LogSource, options: ReplayOptions | None = None, here: Provenance | None = None) -> ReplayReport:
    """Recomputes and compares a run. Raises AuditError where the log cannot be read."""
    return _Replay(source, options or ReplayOptions(), here or Provenance()).report()


class _Replay:
    def __init__(self, source: LogSource, options: ReplayOptions, here: Provenance) -> None:
        self.source, self.options, self.here = source, options, here
        self.run: RunFacts = run_facts(source, options.to_epoch)
        self.failures, self.attempts = Failures(), Attempts(source)
        self.sealed = SealedPass(source, options.to_epoch, self._observe)
        self.pool = BoundaryPass(source, self.sealed, options.to_epoch, self.failures.settled)
        self.divergences: list[Divergence] = []
        self.limits: list[Limit] = limits_of(self.run, here)
        self.open_barriers = 0

    def report(self) -> ReplayReport:
        jobs, processes = self._measurements()
        with shared([job.run for job in jobs], processes) as work:
            boundaries = list(self.pool.boundaries())
            self.sealed.finish()
            measured = self._measured(work.results())
        for partition in measured:
            self._compare_seals(partition)
        seeds = self._compare_seeds()
        self.divergences += settings_divergences(self.source, self.run, self.sealed.seals, boundaries)
        self.divergences += self.sealed.divergences + self.pool.divergences
        self.divergences += self.pool.settlements.divergences(self.sealed.seeds.values())
        self._look_at_failures()
        task = self.options.task
        found = [one for one in self.divergences if not task or one.task in ("", task)]
        return ReplayReport(
            run_id=self.run.run_id,
            counts=self._counts(measured, seeds, boundaries),
            divergences=tuple(sorted(found, key=lambda one: one.order)),
            limits=tuple(self.limits),
            digests={one.epoch: one.recomputed for one in boundaries},
            open_barriers=self.open_barriers,
        )

    def _measurements(self) -> tuple[list[MeasureJob], int]:
        """The partitions to recompute, and in how many processes."""
        partitions = self.source.partitions(Topic.ROLLOUTS)
        if self.options.task:
            partitions = [partition_of(self.options.task, self.run.partitions)]
        like = header_of(self.source, Topic.SEALS, 0, PartitionSealed.KIND)
        if not like:
            return [], 1
        options = self.options
        jobs = [MeasureJob(self.source, number, like, options.to_epoch, options.views) for number in partitions]
        return jobs, self._processes()

    def _measured(self, measured: list[MeasuredPartition]) -> list[MeasuredPartition]:
        for partition in measured:
            self.divergences += partition.divergences
            if partition.problem:
                self.limits.append(Limit(LimitName.ROLLOUTS, partition.problem))
        return measured

    def _processes(self) -> int:
        numbers = self.source.partitions(Topic.ROLLOUTS)
        records = sum(self.source.end(Topic.ROLLOUTS, number) for number in numbers)
        return 1 if records < _IN_PROCESS_RECORDS else self.options.jobs

    def _compare_seals(self, measured: MeasuredPartition) -> None:
        recorded = [seal for seal in self.sealed.seals if seal.partition == measured.partition]
        doubtful = [seal for seal in recorded if not self._equal(measured, seal)]
        if not measured.problem:
            again = seals_at(self.source, measured.partition, {seal.step for seal in doubtful})
            for seal in doubtful:
                self._compare_seal(measured, seal, again.get(SealKey(seal.step, seal.chunk)))
            self._missing_seals(measured, recorded)

    def _equal(self, measured: MeasuredPartition, seal: RecordedSeal) -> bool:
        known = measured.seals.get(SealKey(seal.step, seal.chunk))
        return known is not None and known.frame == seal.frame

    def _compare_seal(self, measured: MeasuredPartition, seal: RecordedSeal, again: PartitionSealed | None) -> None:
        what = f"the seal of step {seal.step} on partition {seal.partition}, chunk {seal.chunk}"
        if again is None:
            short = seal.barrier_offset >= measured.end
            why = f"the archived results end at offset {measured.end}" if short else "no barrier leads to it"
            self._add_seal(seal, what, "", "a seal", f"{ABSENT}: {why}", "")
            return
        value = next(self.source.records(Topic.SEALS, 0, seal.offset)).value or b""
        found = difference(value, again)
        if found is not None:
            self._add_seal(seal, what, *found, _task_at(again, found.path))

    def _add_seal(self, seal: RecordedSeal, what: str, path: str, recorded: str, recomputed: str, task: str) -> None:
        self.divergences.append(
            Divergence(
                Stage.SEAL,
                seal.epoch,
                seal.step,
                self.source.place(Topic.SEALS, 0, seal.offset),
                what,
                path,
                recorded,
                recomputed,
                task=task,
                evidence=evidence_of(self.source, seal.partition, seal.step, task),
            )
        )

    def _missing_seals(self, measured: MeasuredPartition, recorded: Sequence[RecordedSeal]) -> None:
        known = {SealKey(seal.step, seal.chunk) for seal in recorded}
        last = max((seal.step for seal in recorded), default=0)
        for key, seal in measured.seals.items():
            if key in known:
                continue
            if key.step > last:
                self.open_barriers += 1
                continue
            place = self.source.place(Topic.ROLLOUTS, measured.partition, seal.barrier_offset)
            what = f"the seal of step {key.step} on partition {measured.partition}, chunk {key.chunk}"
            self.divergences.append(
                Divergence(
                    Stage.SEAL, seal.epoch, key.step, place, what, "", ABSENT, f"the seal of the barrier at {place}"
                )
            )

    def _compare_seeds(self) -> int:
        expected, seen = self.sealed.seeds, set()
        compared = 0
        for partition, (offset, value, event) in topic_events(self.source, Topic.SEEDS):
            if not isinstance(event, BoundarySeedSelected) or self._beyond(event.epoch):
                continue
            compared += 1
            seen.add((event.step, event.task))
            place = self.source.place(Topic.SEEDS, partition, offset)
            known = expected.get((event.step, event.task))
            if known is None:
                self._add_seed(event, place, "", shown(event.seed), f"{ABSENT}: no selection names it")
            elif (found := difference(value, known)) is not None:
                self._add_seed(event, place, *found)
        for step, task in sorted(expected.keys() - seen):
            if step < self.sealed.log.closed:
                seed = expected[step, task]
                self._add_seed(seed, "seeds", "", ABSENT, shown(seed.seed))
        return compared

    def _add_seed(self, event: BoundarySeedSelected, place: str, path: str, recorded: str, recomputed: str) -> None:
        evidence = tuple(f"group {group}" for group in event.evidence)
        what = f"the seed {event.seed} of task {event.task}"
        self.divergences.append(
            Divergence(
                Stage.SEED, event.epoch, event.step, place, what, path, recorded, recomputed, event.task, evidence
            )
        )

    def _beyond(self, epoch: int) -> bool:
        return self.options.to_epoch is not None and epoch > self.options.to_epoch

    def _observe(self, seal: PartitionSealed) -> None:
        self.attempts.take(seal)
        for group in seal.groups:
            self.failures.group(group)

    def _look_at_failures(self) -> None:
        self.limits += self.failures.limits()
        if self.attempts.missing:
            detail = f"{self.attempts.missing} of {self.attempts.counted} attempts that counted have no trajectory"
            self.limits.append(Limit(LimitName.TRAJECTORIES, f"{detail} in the log"))

    def _counts(self, measured: Sequence[MeasuredPartition], seeds: int, boundaries: Sequence[Boundary]) -> Recomputed:
        return Recomputed(
            groups=sum(one.groups for one in measured),
            attempts=sum(one.attempts for one in measured),
            measurements=sum(one.views for one in measured),
            seals=len(self.sealed.seals),
            selections=len(self.sealed.selections),
            seeds=seeds,
            boundaries=len(boundaries),
        )


def _task_at(seal: PartitionSealed, path: str) -> str:
    """The task of the group or state that a path leads to."""
    for name in ("groups", "state"):
        if path.startswith(f"{name}["):
            items: Iterable[object] = getattr(seal, name)
            return str(getattr(list(items)[int(path[len(name) + 1 : path.index("]")])], "task", ""))
    return ""
