"""How a client reaches the broker. A value: who makes it reads the files and the password.

Wherever a broker is asked for, its address alone means one without TLS or a password.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl


class Security(StrEnum):
    """Kafka's security protocols, by its own names."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def encrypted(self) -> bool:
        return self in (Security.SSL, Security.SASL_SSL)

    @property
    def with_password(self) -> bool:
        return self in (Security.SASL_PLAINTEXT, Security.SASL_SSL)


class Mechanism(StrEnum):
    """SASL mechanisms that a name and a password serve."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class Connection:
    """address: HOST:PORT, or several with commas. tls: needed where `security` is encrypted, and shared by all clients.

    The password is in no representation of this value.
    """

    address: str
    security: Security = Security.PLAINTEXT
    mechanism: Mechanism = Mechanism.SCRAM_SHA_512
    username: str = ""
    password: str = field(default="", repr=False)
    tls: "ssl.SSLContext | None" = field(default=None, repr=False)

    @property
    def addresses(self) -> list[str]:
        """Each HOST:PORT."""
        return self.address.split(",")

    def __str__(self) -> str:
        return self.address


Broker = Connection | str
"""A connection, or the address of a broker that asks for nothing."""


def connection_to(broker: Broker) -> Connection:
    """The connection that a broker's address stands for; a connection stays itself."""
    return broker if isinstance(broker, Connection) else Connection(broker)


def client_options(broker: Broker) -> dict[str, Any]:
    """The part of an aiokafka client's arguments that says how to reach the broker."""
    connection = connection_to(broker)
    return {"bootstrap_servers": connection.address, **security_options(connection)}


def security_options(connection: Connection) -> dict[str, Any]:
    """The same without the address."""
    options: dict[str, Any] = {"security_protocol": connection.security.value}
    if connection.security.encrypted:
        options["ssl_context"] = connection.tls
    if connection.security.with_password:
        options["sasl_mechanism"] = connection.mechanism.value
        options["sasl_plain_username"] = connection.username
        options["sasl_plain_password"] = connection.password
    return options
