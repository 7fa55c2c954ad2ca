"""A fetched batch to the buffers of its streams, and a buffer to its reader, many messages at a time.

Faust takes each message through a generator, a wait, the conductor and the stream, which together took twice as long
as measuring it. What needs none of their care is delivered here; all else is left to them: a message after a gap or
before what was read, a suspended flow, a topic that several streams read.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import faust
from faust.types import TP

AT_ONCE = 16
FULL_BUFFER_SECONDS = 0.005
Records = Mapping[Any, Sequence[Any]]
"""By topic and partition, as a fetch brings them."""


class Delivery:
    """For one consumer."""

    def __init__(self, app: faust.App, consumer: Any) -> None:
        self._app, self._consumer = app, consumer

    async def deliver(self, records: Records, active: "set[Any]") -> Records:
        """Delivers what it can of a fetch, in order, and waits where a buffer is full; what is left for Faust.

        As there, what is not delivered when the flow ends or the group changes is dropped: it will be fetched again.
        Nothing is fetched while a buffer is full. Faust takes a partition out of the fetch long before, and once all
        are out it looks again a second later, when the buffer may have been empty for most of that.
        """
        app, consumer = self._app, self._consumer
        generation = app.consumer_generation_id
        records, full = self._delivered(records, active)
        while full:
            await asyncio.sleep(FULL_BUFFER_SECONDS)
            if consumer.should_stop or not self._flows or app.consumer_generation_id != generation:
                return {}
            records, full = self._delivered(records, active)
        return records

    @property
    def _flows(self) -> bool:
        return bool(self._consumer.flow_active and self._app.flow_control.is_active())

    def _delivered(self, records: Records, active: "set[Any]") -> tuple[Records, bool]:
        """What is left of a fetch, and whether some of it waits for room alone."""
        consumer = self._consumer
        committing = consumer._commit_every is not None and consumer._n_acked >= consumer._commit_every
        if committing or not self._flows or self._app.producer.buffer.size:
            return records, False
        left, full = {}, False
        for place, batch in records.items():
            taken, waits = self._taken(TP(*place), batch, active)
            full = full or waits
            if taken < len(batch):
                left[place] = batch[taken:]
        return left, full

    def _taken(self, place: TP, batch: Sequence[Any], active: "set[Any]") -> tuple[int, bool]:
        """How many messages of a partition were delivered, and whether the next one waits for room alone.

        What was read is the last offset delivered, or the first to come after a seek, or nothing yet.
        """
        app, consumer = self._app, self._consumer
        channels, read = app.topics._tp_index.get(place, ()), consumer._read_offset[place]
        held = place in active or place in consumer._buffered_partitions
        if len(channels) != 1 or not held:
            return 0, False
        if read is None or batch[0].offset == read:
            read = batch[0].offset - 1
        (channel,) = channels
        queue, event_of, message_of = channel.queue, app.conf.Event, consumer._to_message
        taken, full = 0, False
        for record in batch:
            full = queue.full()
            if full or record.offset != read + 1:
                break
            message = message_of(place, record)
            message.refcount = 1
            event = event_of(app, message.key, message.value, message.headers, message)
            queue.put_nowait(event)
            read += 1
            taken += 1
        if taken:
            consumer._read_offset[place] = read
            app.monitor.track_tp_end_offset(place, consumer.highwater(place))
        return taken, full


def buffered(app: faust.App, stream: Any) -> Iterator[Any]:
    """The events that already wait in a stream's buffer, some at once, without the framework's way to each.

    The stream itself would drop those of an older generation, and acknowledge them; here it is for the reader to do so,
    as it must anyway: what it waits for may bring a rebalance.
    """
    queue, inbound, now = stream.channel.queue, app.monitor.stream_inbound_time, monotonic()
    for _ in range(AT_ONCE):
        if queue.empty():
            return
        event = queue.get_nowait()
        inbound[event.message.tp] = now
        yield event
