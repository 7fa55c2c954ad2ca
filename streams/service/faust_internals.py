"""Where the service reaches into Faust: every use of a private name of Faust or mode stands in this file.

Faust takes each message through a generator, a wait, the conductor and the stream, which together cost more than
measuring it. `Delivery` brings a fetched batch to the buffers of its streams, and `buffered` a buffer to its reader.
What needs Faust's care is left to it: a message after a gap or before what was read, a suspended flow, a topic that
several streams read. A new version of Faust or mode asks for this file to be read again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from time import monotonic
from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from eventlog.client import LIVE_FETCH_MS

VERSIONS = {"faust-streaming": "0.15.3", "mode-streaming": "0.7.1"}
"""The versions that this file holds for."""
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


class StreamsApp(faust.App):  # type: ignore[misc]
    """A crash of any of its services calls `crashed_with` at once.

    Faust would stop them by degrees instead, which waits without a limit for the consumer's thread, and under which no
    watchdog ends anything.
    """

    crashed_with: Callable[[BaseException], None]

    def _crash(self, reason: BaseException) -> None:
        if not self._stopped.is_set():
            self.crashed_with(reason)
        super()._crash(reason)


class _ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = LIVE_FETCH_MS
        return consumer

    async def crash(self, exc: BaseException) -> None:
        """Told to the app first: Faust marks its services from this thread while their own loop may be at them."""
        self.app._crash(exc)
        await super().crash(exc)


class _Consumer(driver.Consumer):  # type: ignore[misc]
    def _new_consumer_thread(self) -> Any:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _wait_next_records(self, timeout: float) -> tuple[Any, Any]:  # noqa: ASYNC109 - Faust's own
        """A fetch; what can go to its streams' buffers at once has gone, and Faust delivers the rest."""
        records, active = await super()._wait_next_records(timeout)
        if records and active and not self.should_stop:
            records = await self._delivery.deliver(records, active)
        return records, active

    @cached_property
    def _delivery(self) -> Delivery:
        return Delivery(self.app, self)


class _Producer(driver.Producer):  # type: ignore[misc]
    async def send_many(self, topic: str, partition: int, pairs: Iterable[tuple[bytes, bytes]]) -> list[Awaitable[Any]]:
        """Schedules keys and values in their order; what to await for the broker's acknowledgement of them all.

        A batch made here costs a sixth of as many sends.
        """
        producer = self._ensure_producer()
        sent = []
        batch = producer.create_batch()
        for key, value in pairs:
            if batch.append(key=key, value=value, timestamp=None) is None:
                sent.append(await producer.send_batch(batch, topic, partition=partition))
                batch = producer.create_batch()
                batch.append(key=key, value=value, timestamp=None)
        sent.append(await producer.send_batch(batch, topic, partition=partition))
        return sent


class RawSchema(faust.Schema):  # type: ignore[misc]
    """Keys and values as the bytes they are, without a look at the registry of codecs for each."""

    def compile(self, app: Any, **_: Any) -> Callable[..., Awaitable[Any]]:
        """A function from a message to its event."""

        async def decode(message: Any, **_: Any) -> Any:
            return app.create_event(message.key, message.value, message.headers, message)

        return decode


class LightMonitor(faust.Monitor):  # type: ignore[misc]
    """Faust's monitor without its figures per message: what Faust itself asks it for is kept, and the metrics of the
    service are counted elsewhere (`streams.service.metrics`)."""

    def on_message_in(self, tp: Any, offset: int, *_: Any) -> None:
        self.tp_read_offsets[tp] = offset

    def on_message_out(self, *_: Any) -> None:
        pass

    def on_stream_event_in(self, tp: Any, *_: Any) -> None:
        self.stream_inbound_time[tp] = monotonic()

    def on_stream_event_out(self, *_: Any) -> None:
        pass


class PromptTransport(driver.Transport):  # type: ignore[misc]
    """Kafka by aiokafka, polling often and sending in batches."""

    Consumer = _Consumer
    Producer = _Producer


def use_prompt_transport(app: faust.App) -> None:
    """Gives an app that has not started, and has no topics yet, the prompt transport.

    Faust waits up to 1.5 s in a fetch, which a Kafka broker ends when something arrives. The embedded broker looks for
    news at intervals in proportion to that wait.
    """
    app.conf.Monitor = LightMonitor
    app.conf.Schema = RawSchema
    app.transport = PromptTransport(app.conf.broker_consumer, app)
    app.producer_transport = PromptTransport(app.conf.broker_producer, app)
