"""A broker with TLS and passwords: let in, or told in one sentence why not; and no password on a disk or a screen."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from eventlog.client import log_producer
from eventlog.connection import Mechanism, Security
from eventlog.reader import read_all
from eventlog.writer import send
from rods.brokers.connection import connection_of, tried
from rods.brokers.embedded import create_topics
from rods.errors import UserError
from rods.settings import PASSWORD_VARIABLE, ConnectionSettings, Settings
from tests.integration.kafka_nodes import PASSWORD, USER, SecureBroker, secure_broker
from tests.integration.loop import PATIENT, Loop, digests

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


def settings(
    address: str,
    security: Security,
    mechanism: Mechanism = Mechanism.SCRAM_SHA_512,
    username: str = USER,
    password: str = PASSWORD,
    ca_file: str = "",
) -> Settings:
    connection = ConnectionSettings(
        security_protocol=security,
        sasl_mechanism=mechanism,
        username=username,
        password=SecretStr(password),
        ca_file=ca_file,
    )
    return Settings(broker=address, connection=connection)


def ways_in(broker: SecureBroker) -> list[Settings]:
    ca = str(broker.ca_file)
    return [
        settings(broker.plaintext, Security.PLAINTEXT),
        settings(broker.sasl_plaintext, Security.SASL_PLAINTEXT, Mechanism.PLAIN),
        settings(broker.sasl_ssl, Security.SASL_SSL, Mechanism.SCRAM_SHA_256, ca_file=ca),
        settings(broker.sasl_ssl, Security.SASL_SSL, Mechanism.SCRAM_SHA_512, ca_file=ca),
        settings(broker.ssl, Security.SSL, ca_file=ca),
    ]


async def test_every_kind_of_listener_is_reached_and_takes_events(broker: SecureBroker) -> None:
    for number, chosen in enumerate(ways_in(broker)):
        connection = connection_of(chosen)
        await tried(connection, 5)
        await create_topics(connection, f"w{number}.", 1)
        async with log_producer(connection) as producer:
            await send(producer, f"w{number}.rollouts", 0, "k", b"v")
        assert [record.value async for record in read_all(connection, f"w{number}.rollouts", 0)] == [b"v"]


async def refused(chosen: Settings) -> str:
    with pytest.raises(UserError) as raised:
        await tried(connection_of(chosen), 0)
    return str(raised.value)


async def test_a_wrong_password_or_user_is_said_to_be_wrong(broker: SecureBroker) -> None:
    ca = str(broker.ca_file)
    for words in (
        await refused(settings(broker.sasl_ssl, Security.SASL_SSL, password="guess", ca_file=ca)),
        await refused(settings(broker.sasl_ssl, Security.SASL_SSL, username="nobody", ca_file=ca)),
        await refused(settings(broker.sasl_plaintext, Security.SASL_PLAINTEXT, Mechanism.PLAIN, password="guess")),
    ):
        assert "refuses the password of user" in words
        assert PASSWORD_VARIABLE in words
        assert "guess" not in words


async def test_what_else_does_not_fit_is_named(broker: SecureBroker) -> None:
    ca = str(broker.ca_file)
    plain = await refused(settings(broker.sasl_ssl, Security.SASL_SSL, Mechanism.PLAIN, ca_file=ca))
    assert "does not take PLAIN" in plain
    assert "certificate" in await refused(settings(broker.sasl_ssl, Security.SASL_SSL))
    assert "hangs up on SSL" in await refused(settings(broker.plaintext, Security.SSL, ca_file=ca))
    assert "asks for no password" in await refused(settings(broker.plaintext, Security.SASL_PLAINTEXT))
    assert "connection.security_protocol" in await refused(settings(broker.sasl_ssl, Security.PLAINTEXT))
    assert "connection.security_protocol" in await refused(settings(broker.sasl_plaintext, Security.PLAINTEXT))


def flags(broker: SecureBroker) -> list[str]:
    return [
        *("--broker", broker.sasl_ssl),
        *("--set", "connection.security_protocol=SASL_SSL"),
        *("--set", "connection.sasl_mechanism=SCRAM-SHA-256"),
        *("--set", f"connection.username={USER}"),
        *("--set", f"connection.ca_file={broker.ca_file}"),
    ]


def test_a_run_with_a_wrong_password_says_so_and_leaves_no_folder(broker: SecureBroker, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rods", "run", "--policy", "scripted", "--folder", str(tmp_path / "run")]
    environment = {**os.environ, PASSWORD_VARIABLE: "guess"}
    done = subprocess.run([*command, *flags(broker)], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.strip().count("\n") == 0
    assert f"refuses the password of user '{USER}'" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_over_tls_with_a_password_decides_as_on_the_embedded_broker_and_writes_the_password_nowhere(
    broker: SecureBroker, tmp_path: Path, embedded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    loop = Loop(tmp_path / "run", *flags(broker), *PATIENT, epochs=2)
    try:
        result = loop.result()
    finally:
        loop.end()
    assert result["restarts"] == {}
    assert digests(tmp_path / "run") == digests(embedded)
    written = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert [path for path in written if PASSWORD.encode() in path.read_bytes()] == []
    resolved = json.loads((tmp_path / "run" / "settings.json").read_text())["connection"]
    assert resolved["username"] == USER
    assert resolved["password"] == ""
