"""What `rods.epochs` says of a run: its rules by epoch, what it ran on, and how its epochs ended."""

from dataclasses import dataclass, field

from schemas.epochs import EpochClosed, EpochOpened, PolicyPublished, StepOpened
from schemas.topics import Topic
from streams.audit.errors import AuditError
from streams.audit.load.source import LogSource, events


@dataclass(slots=True)
class RunFacts:
    """By epoch or step; the first event of a key counts."""

    run_id: str = ""
    opened: dict[int, EpochOpened] = field(default_factory=dict)
    opened_at: dict[int, int] = field(default_factory=dict)
    closed: dict[int, EpochClosed] = field(default_factory=dict)
    closed_at: dict[int, int] = field(default_factory=dict)
    steps: dict[int, StepOpened] = field(default_factory=dict)
    published: dict[int, PolicyPublished] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        """N. Raises AuditError where no epoch was opened."""
        if not self.opened:
            raise AuditError("the log holds no EpochOpened: there is no run to audit")
        return self.opened[min(self.opened)].partitions


def run_facts(source: LogSource, to_epoch: int | None = None) -> RunFacts:
    """What the log says up to an epoch."""
    run = RunFacts()
    for placed in events(source, Topic.EPOCHS, 0) if source.partitions(Topic.EPOCHS) else ():
        event = placed.event
        if event is not None:
            run.run_id = run.run_id or event.envelope.run_id
        match event:
            case EpochOpened() if event.epoch not in run.opened and _within(event.epoch, to_epoch):
                run.opened[event.epoch], run.opened_at[event.epoch] = event, placed.offset
            case EpochClosed() if event.epoch not in run.closed and _within(event.epoch, to_epoch):
                run.closed[event.epoch], run.closed_at[event.epoch] = event, placed.offset
            case StepOpened() if _within(event.epoch, to_epoch):
                run.steps.setdefault(event.step, event)
            case PolicyPublished():
                run.published.setdefault(event.version, event)
    return run


def partitions_of(source: LogSource) -> int:
    """N, by the first epoch that was opened: it never changes. Raises AuditError where none was."""
    for placed in events(source, Topic.EPOCHS, 0) if source.partitions(Topic.EPOCHS) else ():
        if isinstance(placed.event, EpochOpened):
            return placed.event.partitions
    return RunFacts().partitions


def _within(epoch: int, to_epoch: int | None) -> bool:
    return to_epoch is None or epoch <= to_epoch
