"""A streams worker whose framework misbehaves: ``python -m tests.integration.faults.worker SETTINGS`` (JSON).

Faults that wait for a sign begin once the file `sign` exists, and a worker that is started again has none of them.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError, RequestTimedOutError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from streams.measure.agent import MeasureAgent
from streams.settings import StreamsSettings
from streams.worker import run_streams


def commit_fails_once(sign: Path) -> None:
    """The first commit raises what a broker that is slow for a moment makes of it."""
    _first_commit(sign, RequestTimedOutError)


def commit_is_refused_once(sign: Path) -> None:
    """The first commit meets a group that has moved on."""
    _first_commit(sign, lambda: CommitFailedError("the group has already rebalanced"))


def _first_commit(sign: Path, error: Callable[[], Exception]) -> None:
    whole, left = AIOKafkaConsumer.commit, [1]

    async def commit(self: Any, offsets: Any = None) -> None:
        if left and sign.exists():
            left.clear()
            raise error()
        await whole(self, offsets)

    AIOKafkaConsumer.commit = commit


def commits_are_slow(sign: Path) -> None:
    """Between a fetch and its commit there is time for the group to change."""
    whole = AIOKafkaConsumer.commit

    async def commit(self: Any, offsets: Any = None) -> None:
        await asyncio.sleep(1.0)
        await whole(self, offsets)

    AIOKafkaConsumer.commit = commit


def consumer_sticks(sign: Path) -> None:
    """From the sign on, the group's consumer says that there is nothing, and no error."""
    _fetching(lambda records: {} if sign.exists() else records)


def loop_blocks(sign: Path) -> None:
    """From the sign on, something holds the event loop for a minute."""
    whole = MeasureAgent.take

    async def take(self: MeasureAgent, event: Any) -> None:
        if sign.exists():
            time.sleep(60.0)
        await whole(self, event)

    MeasureAgent.take = take  # type: ignore[method-assign]


def event_is_skipped(sign: Path) -> None:
    """Once, a fetch comes without its first record."""
    left = [1]

    def skipping(records: Any) -> Any:
        for place, batch in records.items():
            if left and sign.exists() and place.topic.endswith("rollouts") and len(batch) > 1:
                left.clear()
                return {**records, place: batch[1:]}
        return records

    _fetching(skipping)


def _fetching(changed: Callable[[Any], Any]) -> None:
    whole = AIOKafkaConsumerThread._fetch_records

    async def fetch(self: Any, *args: Any, **options: Any) -> Any:
        return changed(await whole(self, *args, **options))

    AIOKafkaConsumerThread._fetch_records = fetch


FAULTS: dict[str, Callable[[Path], None]] = {
    fault.__name__: fault
    for fault in (
        commit_fails_once,
        commit_is_refused_once,
        commits_are_slow,
        consumer_sticks,
        loop_blocks,
        event_is_skipped,
    )
}


def main(text: str) -> None:
    """Runs a worker. settings: those of `StreamsSettings`, and fault, sign."""
    logging.basicConfig(level="WARNING")
    settings = json.loads(text)
    fault, sign = settings.pop("fault", ""), Path(settings.pop("sign", "/nowhere"))
    if fault and not sign.with_suffix(".spent").exists():
        sign.with_suffix(".spent").touch()
        FAULTS[fault](sign)
    run_streams(StreamsSettings(**{**settings, "data_dir": Path(settings["data_dir"])}))


if __name__ == "__main__":
    main(sys.argv[1])
