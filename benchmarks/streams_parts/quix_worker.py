"""The same fold in quixstreams with its state store, as a process; the arguments are those of `worker`.

It runs in an environment of its own (see `quix_environment`), since quixstreams pins an older pydantic than this
project. It reads each message's bytes, decodes them with this project's codec, and keeps a task's state in the store.
"""

import sys
import time
from pathlib import Path
from typing import Any

from quixstreams import Application, message_context  # type: ignore[import-not-found]
from quixstreams.state import State  # type: ignore[import-not-found]

from benchmarks.streams_parts.meter import Meter
from benchmarks.streams_parts.task_fold import folded, plain
from schemas.codec import decode
from schemas.rollouts import RolloutFinished
from schemas.topics import Topic


def main() -> None:
    """Runs until the meter ends the process."""
    _, broker, prefix, partitions, folder, name, ends = sys.argv[1:]
    meter = Meter(Path(folder), name, [int(end) for end in ends.split(",")])
    app = Application(
        broker_address=broker,
        consumer_group=f"{prefix}streams",
        auto_offset_reset="earliest",
        state_dir=str(Path(folder) / f"{name}-state"),
        auto_create_topics=True,
        commit_interval=1.0,
    )
    topic = app.topic(Topic.ROLLOUTS.named(prefix), key_deserializer="bytes", value_deserializer="bytes")

    def take(value: bytes, state: State) -> Any:
        if not meter.started:
            meter.joined(range(int(partitions)))
            while not meter.may_go:
                time.sleep(0.01)
            meter.go()
        finished = decode(value)
        if isinstance(finished, RolloutFinished):
            state.set("task", plain(folded(state.get("task"), finished)))
        context = message_context()
        meter.tick(context.partition, context.offset)

    app.dataframe(topic).update(take, stateful=True)
    app.run()


if __name__ == "__main__":
    main()
