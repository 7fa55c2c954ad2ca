"""A rollout worker whose results go to a topic aside: ``python -m tests.integration.faults.aside --settings FILE``."""

import sys

from eventlog.writer import Outgoing
from producers.rollouts import worker
from producers.rollouts.runner import Delivery
from rods.cli.main import app
from schemas.topics import Topic


def aside(prefix: str) -> str:
    """The topic, with as many partitions as `rods.rollouts`."""
    return f"{prefix}aside"


def main() -> None:
    """Works as ``rods rollouts work`` does."""
    whole = worker._Deliveries._out

    def out(self: worker._Deliveries, topic: Topic, delivery: Delivery, value: bytes) -> Outgoing:
        made = whole(self, topic, delivery, value)
        return made._replace(topic=aside(self.prefix)) if topic is Topic.ROLLOUTS else made

    worker._Deliveries._out = out  # type: ignore[method-assign]
    app(["rollouts", "work", *sys.argv[1:]])


if __name__ == "__main__":
    main()
