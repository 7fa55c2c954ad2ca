"""From settings to a connection, and what is wrong where none can be made.

aiokafka's clients keep the reason of a refusal to their logs; so a connection is tried out by itself before a run.
"""

import asyncio
import ssl
from pathlib import Path
from typing import NamedTuple

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from eventlog.connection import Connection, security_options
from rods.errors import UserError
from rods.settings import PASSWORD_VARIABLE, ConnectionSettings, Settings

ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 0.2


def connection_of(settings: Settings, address: str | None = None) -> Connection:
    """The connection to the settings' broker, or to another address by the same means.

    Reads the password file and the certificates. Raises UserError.
    """
    chosen = settings.connection
    address = settings.broker if address is None else address
    for one in address.split(","):
        parse_address(one)
    return Connection(
        address=address,
        security=chosen.security_protocol,
        mechanism=chosen.sasl_mechanism,
        username=_username(chosen),
        password=_password(chosen),
        tls=_tls(chosen.ca_file) if chosen.security_protocol.encrypted else None,
    )


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``. Raises UserError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UserError(f"a broker is given as HOST:PORT, not {address!r}")
    return host.strip("[]"), int(port)


def try_connection(connection: Connection, seconds: float = 10.0) -> None:
    """Returns once one of the brokers lets us in. Raises UserError: at once where all of them refuse, after `seconds`
    where none answers. Blocks; call it outside an event loop."""
    asyncio.run(tried(connection, seconds))


async def tried(connection: Connection, seconds: float = 10.0) -> None:
    """The same inside an event loop."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        refusals = [await _refusal(connection, address) for address in connection.addresses]
        if None in refusals:
            return
        found = [refusal for refusal in refusals if refusal]
        final = [refusal.sentence for refusal in found if refusal.final]
        if final or loop.time() >= end:
            raise UserError(final[0] if final else found[0].sentence)
        await asyncio.sleep(_PAUSE_SECONDS)


class _NoEntry(NamedTuple):
    """Why a broker does not let us in. final: waiting will not change it."""

    final: bool
    sentence: str


async def _refusal(connection: Connection, address: str) -> _NoEntry | None:
    host, port = parse_address(address)
    milliseconds = int(ANSWER_SECONDS * 1000)
    try:
        reached = await create_conn(host, port, request_timeout_ms=milliseconds, **security_options(connection))
        try:
            # A listener that wants a password tells its versions without one, and hangs up on the next question.
            await reached.send(MetadataRequest([]))
        finally:
            reached.close()
    except (OSError, KafkaError, TimeoutError) as error:
        return _explained(error, connection, address)
    return None


def _explained(error: Exception, connection: Connection, address: str) -> _NoEntry:
    match error:
        case SaslAuthenticationFailed() | AuthenticationFailedError():
            return _NoEntry(
                True,
                f"the broker at {address} refuses the password of user {connection.username!r} "
                f"({connection.mechanism}); check connection.username and {PASSWORD_VARIABLE}",
            )
        case UnsupportedSaslMechanismError():
            return _NoEntry(
                True,
                f"the broker at {address} does not take {connection.mechanism} at this port; "
                "set connection.sasl_mechanism to one that it does",
            )
        case IllegalSaslStateError():
            asks = f"the broker at {address} asks for no password at this port"
            return _NoEntry(True, f"{asks}; check connection.security_protocol")
        case ssl.SSLCertVerificationError():
            reason = getattr(error, "verify_message", "") or "it cannot be verified"
            untrusted = f"the certificate of the broker at {address} is not trusted ({reason})"
            return _NoEntry(True, f"{untrusted}; check connection.ca_file")
        case ssl.SSLError():
            silent = f"the broker at {address} does not speak TLS at this port"
            return _NoEntry(True, f"{silent}; check connection.security_protocol")
    if isinstance(error, ConnectionRefusedError | TimeoutError) or not isinstance(error, KafkaError | ConnectionError):
        return _NoEntry(
            False,
            f"no Kafka broker answers at {address}; start one there, or name another with --broker "
            "(`rods run` starts its own with --broker embedded or kafka)",
        )
    return _NoEntry(
        False,
        f"what listens at {address} hangs up on {connection.security}: no Kafka broker, or one that wants another "
        "connection.security_protocol",
    )


def _username(chosen: ConnectionSettings) -> str:
    if chosen.security_protocol.with_password and not chosen.username:
        raise UserError(f"{chosen.security_protocol} needs a user: set connection.username")
    return chosen.username


def _password(chosen: ConnectionSettings) -> str:
    if not chosen.security_protocol.with_password:
        return ""
    if given := chosen.password.get_secret_value():
        return given
    if not chosen.password_file:
        raise UserError(
            f"{chosen.security_protocol} needs a password: set {PASSWORD_VARIABLE} or connection.password_file"
        )
    try:
        lines = Path(chosen.password_file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the password file {chosen.password_file} cannot be read: {error}") from error
    if not lines or not lines[0]:
        raise UserError(f"the password file {chosen.password_file} has nothing in its first line")
    return lines[0]


def _tls(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"the certificates in {ca_file} cannot be read: {error}") from error
