"""The life of the broker that a run has started: one whose log is on disk is started again, another ends the run.

Clients wait for a broker that comes back on its port (`docs/faults.md`), so they need no notice.
"""

import asyncio
import time
from collections.abc import Callable

from rods.brokers.embedded import EmbeddedBroker
from rods.brokers.kafka import KafkaBroker
from rods.errors import UserError
from rods.supervise import RecentDeaths, RestartLimits, cause_of, last_words

RunBroker = EmbeddedBroker | KafkaBroker
_LOOK_SECONDS = 0.2


class BrokerLostError(Exception):
    """The run cannot go on without its broker. last_words: the last lines of the broker's log."""

    def __init__(self, reason: str, last_words: str) -> None:
        super().__init__(reason)
        self.last_words = last_words


class BrokerKeeper:
    """Looks after one broker. run: the folder, for whoever has to resume it; say: tells a person.

    Await `watch` in the thread that entered the broker: its life is bound to that of the thread that starts it.
    """

    def __init__(
        self, broker: RunBroker, run: str, say: Callable[[str], None], limits: RestartLimits | None = None
    ) -> None:
        self._broker, self._run, self._say = broker, run, say
        self._recent = RecentDeaths(limits or RestartLimits())
        self.deaths = 0

    async def watch(self) -> None:
        """Returns never. Raises BrokerLostError."""
        while True:
            if not self._broker.alive:
                await self._died(cause_of(self._broker.returncode or 0))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _died(self, cause: str) -> None:
        self.deaths += 1
        self._recent.add(time.monotonic())
        broker, words = self._broker, last_words(self._broker.log_file)
        way = f"go on from there with: rods run --resume {self._run}"
        if isinstance(broker, EmbeddedBroker):
            lost = f"the embedded broker died ({cause}), and what it held in memory with it"
            raise BrokerLostError(f"{lost}; the archive has every epoch that was closed: {way}", words)
        if self._recent.too_many:
            often = f"the Kafka broker keeps dying ({cause}, {len(self._recent.times)} times)"
            raise BrokerLostError(f"{often}; its log is kept: {way}", words)
        self._say(f"the Kafka broker died of {cause}; starting it again")
        await asyncio.sleep(self._recent.pause)
        try:
            broker.start_again()
        except UserError as error:
            self._say(f"the Kafka broker cannot be started: {error}")
