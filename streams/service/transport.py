"""Faust's Kafka transport: its security, short fetches, and a cheaper way of each message to its stream.

Faust waits up to 1.5 s in a fetch, which a Kafka broker ends when something arrives. The embedded broker looks for
news at intervals in proportion to that wait, so that an event took 420 ms to arrive; with 50 ms it takes about 5.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from functools import cached_property
from time import monotonic
from typing import Any

import faust
from faust.auth import SASLCredentials, SSLCredentials
from faust.transport.drivers import aiokafka as driver
from mode.services import WaitResults

from eventlog.connection import Connection
from streams.service.delivery import FULL_BUFFER_SECONDS, Delivery

FETCH_WAIT_MS = 50


def credentials(connection: Connection) -> SASLCredentials | SSLCredentials | None:
    """The security of a connection in Faust's words; None for a broker that asks for nothing."""
    if connection.security.with_password:
        return SASLCredentials(
            username=connection.username,
            password=connection.password,
            ssl_context=connection.tls if connection.security.encrypted else None,
            mechanism=connection.mechanism.value,
        )
    return SSLCredentials(connection.tls) if connection.security.encrypted else None


class _ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
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

    async def wait_first(self, *waited: Any, timeout: Any = None) -> Any:  # noqa: ASYNC109 - Faust's own
        """A delivery that its stream's buffer takes at once is done at once; Faust makes four tasks for each.

        One that finds the buffer full waits as before, and then a moment more, in which the stream makes room for many.
        """
        delivery = waited[0]
        if len(waited) != 2 or timeout is not None or self.should_stop or not inspect.iscoroutine(delivery):
            return await super().wait_first(*waited, timeout=timeout)
        try:
            waits_for = delivery.send(None)
        except StopIteration as done:
            _unawaited(waited[1:])
            return WaitResults([delivery], [done.value], False)
        except BaseException:
            _unawaited(waited[1:])
            raise
        results = await super().wait_first(_Resumed(delivery, waits_for), *waited[1:])
        await asyncio.sleep(FULL_BUFFER_SECONDS)
        return results


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


class _Resumed:
    """The rest of a coroutine that was begun by hand and waits for something. Awaited once."""

    def __init__(self, begun: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._begun = begun
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for = self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:  # noqa: BLE001 - a cancellation, too, is the coroutine's to handle
                    waits_for = self._begun.throw(error)
                else:
                    waits_for = self._begun.send(sent)
        except StopIteration as done:
            return done.value


def _unawaited(waited: tuple[Any, ...]) -> None:
    for waits in waited:
        if inspect.iscoroutine(waits):
            waits.close()


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
    """Gives an app that has not started, and has no topics yet, the prompt transport."""
    app.conf.Monitor = LightMonitor
    app.conf.Schema = RawSchema
    app.transport = PromptTransport(app.conf.broker_consumer, app)
    app.producer_transport = PromptTransport(app.conf.broker_producer, app)
