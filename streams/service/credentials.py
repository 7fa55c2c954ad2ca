"""The security of a connection in Faust's words."""

from faust.auth import SASLCredentials, SSLCredentials

from eventlog.connection import Connection


def credentials(connection: Connection) -> SASLCredentials | SSLCredentials | None:
    """None for a broker that asks for nothing."""
    if connection.security.with_password:
        return SASLCredentials(
            username=connection.username,
            password=connection.password,
            ssl_context=connection.tls if connection.security.encrypted else None,
            mechanism=connection.mechanism.value,
        )
    return SSLCredentials(connection.tls) if connection.security.encrypted else None
