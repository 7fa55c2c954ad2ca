"""A streams worker whose framework misbehaves: ``python -m tests.integration.faults.worker SETTINGS`` (JSON).

Faults that wait for a sign begin once the file `sign` exists, and a worker that is started again has none of them but
those of `LASTING`. A fault that has happened leaves a line in the file with the suffix `.fired`.
"""

import asyncio
import faulthandler
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError, RequestTimedOutError
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from schemas.codec import decode
from schemas.rollouts import RolloutFinished
from streams.measure.agent import MeasureAgent
from streams.service.settings import StreamsSettings
from streams.service.worker import run_streams
from tests.integration.holding import tell

TAKEN_OF_A_BATCH = 5
COMMITTED = "committed"
STACKS = signal.SIGRTMIN
"""Makes a worker write the stacks of its threads to its log file. Faust has a use of its own for SIGUSR1."""


def commit_fails_once(sign: Path) -> None:
    """The first commit raises what a broker that is slow for a moment makes of it."""
    _first_commit(sign, RequestTimedOutError)


def ending_hangs(sign: Path) -> None:
    """The first commit fails, and a framework that stops its services for that waits for the consumer for ever."""

    async def never(self: Any) -> None:
        await asyncio.Event().wait()

    AIOKafkaConsumerThread.on_thread_stop = never
    commit_fails_once(sign)


def commit_is_refused_once(sign: Path) -> None:
    """The first commit meets a group that has moved on."""
    _first_commit(sign, lambda: CommitFailedError("the group has already rebalanced"))


def _first_commit(sign: Path, error: Callable[[], Exception]) -> None:
    whole, left = AIOKafkaConsumer.commit, [1]

    async def commit(self: Any, offsets: Any = None) -> None:
        if left and sign.exists():
            left.clear()
            _fired(sign)
            raise error()
        await whole(self, offsets)

    AIOKafkaConsumer.commit = commit


def commits_outlast_a_generation(sign: Path) -> None:
    """A commit that is on its way, which `.committing` shows, comes to its end in a later generation of the group.

    What came of it is said where the fault has happened.
    """
    whole = AIOKafkaConsumer.commit

    async def commit(self: Any, offsets: Any = None) -> None:
        generation = self._coordinator.generation
        while sign.exists() and self._coordinator.generation <= generation:
            sign.with_suffix(".committing").touch()
            await asyncio.sleep(0.05)
        if self._coordinator.generation <= generation:
            await whole(self, offsets)
            return
        sign.with_suffix(".committing").unlink()
        try:
            await whole(self, offsets)
        except Exception as error:
            _fired(sign, type(error).__name__)
            raise
        _fired(sign, COMMITTED)

    AIOKafkaConsumer.commit = commit


def consumer_sticks(sign: Path) -> None:
    """From the sign on, the group's consumer says that there is nothing, and no error."""

    def nothing(records: Any) -> Any:
        if records and sign.exists():
            _fired(sign)
            return {}
        return records

    _fetching(nothing)


def stops_in_mid_batch(sign: Path) -> None:
    """The process is stopped, as by SIGSTOP from outside, once it has taken some results of those after the sign."""
    whole, taken = MeasureAgent.take, [0]

    async def take(self: MeasureAgent, event: Any) -> None:
        if sign.exists() and isinstance(decode(event.message.value), RolloutFinished):
            if taken[0] == TAKEN_OF_A_BATCH:
                _fired(sign, str(taken[0]))
                os.kill(os.getpid(), signal.SIGSTOP)
            taken[0] += 1
        await whole(self, event)

    MeasureAgent.take = take  # type: ignore[method-assign]


def loop_blocks(sign: Path) -> None:
    """From the sign on, something holds the event loop for a minute."""
    whole = MeasureAgent.take

    async def take(self: MeasureAgent, event: Any) -> None:
        if sign.exists():
            _fired(sign)
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
                _fired(sign)
                return {**records, place: batch[1:]}
        return records

    _fetching(skipping)


def _fetching(changed: Callable[[Any], Any]) -> None:
    whole = AIOKafkaConsumerThread._fetch_records

    async def fetch(self: Any, *args: Any, **options: Any) -> Any:
        return changed(await whole(self, *args, **options))

    AIOKafkaConsumerThread._fetch_records = fetch


def _fired(sign: Path, what: str = "") -> None:
    with sign.with_suffix(".fired").open("a") as lines:
        lines.write(f"{what}\n")


FAULTS: dict[str, Callable[[Path], None]] = {
    fault.__name__: fault
    for fault in (
        commit_fails_once,
        ending_hangs,
        commit_is_refused_once,
        commits_outlast_a_generation,
        consumer_sticks,
        stops_in_mid_batch,
        loop_blocks,
        event_is_skipped,
    )
}
LASTING = ("commits_outlast_a_generation",)


def main(text: str) -> None:
    """Runs a worker. settings: those of `StreamsSettings`, and fault, sign."""
    logging.basicConfig(level="WARNING")
    faulthandler.register(STACKS, all_threads=True)
    settings = json.loads(text)
    fault, sign = settings.pop("fault", ""), Path(settings.pop("sign", "/nowhere"))
    tell(sign.with_suffix(".held"))
    if fault and (fault in LASTING or not sign.with_suffix(".spent").exists()):
        sign.with_suffix(".spent").touch()
        FAULTS[fault](sign)
    run_streams(StreamsSettings(**{**settings, "data_dir": Path(settings["data_dir"])}))


if __name__ == "__main__":
    main(sys.argv[1])
