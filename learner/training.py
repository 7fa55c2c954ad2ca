"""What the phases of one learner share: the log it writes, the model it trains, and the rules of the open epoch."""

from dataclasses import dataclass, field

from learner.asking import Asking
from learner.cuts import Cuts
from learner.history import History
from learner.in_flight import InFlight
from learner.journal import Journal
from learner.trainer import Trainer
from schemas.epochs import PolicyPublished
from schemas.rules import Rules
from streams.pool.evidence import SealedSteps
from streams.pool.state import PoolState


@dataclass(slots=True)
class Training:
    """One generation at work."""

    journal: Journal
    trainer: Trainer
    rules: Rules
    """Of the open epoch; until one is open, those that the learner is configured with."""
    cuts: Cuts | None = None
    """Where the archive is the log of record."""
    in_flight: InFlight = field(init=False)

    def __post_init__(self) -> None:
        self.under(self.rules)

    def under(self, rules: Rules) -> None:
        """Goes on under the rules of the epoch that opens."""
        self.rules, self.in_flight = rules, InFlight.under(rules)

    @property
    def history(self) -> History:
        return self.journal.views.history

    @property
    def pool(self) -> PoolState:
        return self.journal.views.pool

    @property
    def seals(self) -> SealedSteps:
        return self.journal.views.seals

    @property
    def asking(self) -> Asking:
        return Asking(self.journal.generation, self.rules, self.pool, self.journal.log.partitions)

    async def publish(self, version: int) -> None:
        """Makes the weights as they are readable under a version, and says so."""
        published = await self.trainer.publish(version, self.journal.generation)
        event = PolicyPublished(self.journal.generation, version, published.location, published.sha256)
        await self.journal.to_epochs(event)

    async def cut(self) -> None:
        """A place to resume from, after the last closed step."""
        if self.cuts is not None:
            await self.cuts.take(self.journal.log, self.history.last_closed_step)
