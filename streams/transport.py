"""Faust's Kafka transport: its security, and short fetches.

Faust waits up to 1.5 s in a fetch, which a Kafka broker ends when something arrives. The embedded broker looks for
news at intervals in proportion to that wait, so that an event took 420 ms to arrive; with 50 ms it takes about 5.
"""

from typing import Any

import faust
from faust.auth import SASLCredentials, SSLCredentials
from faust.transport.drivers import aiokafka as driver

from schemas.connection import Connection

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


class _Consumer(driver.Consumer):  # type: ignore[misc]
    def _new_consumer_thread(self) -> Any:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class PromptTransport(driver.Transport):  # type: ignore[misc]
    """Kafka by aiokafka, polling often."""

    Consumer = _Consumer


def use_prompt_transport(app: faust.App) -> None:
    """Gives an app that has not started the prompt transport for its consumer."""
    app.transport = PromptTransport(app.conf.broker_consumer, app)
