"""From settings to a connection: a password comes in by few ways and goes out by none."""

import json
import socket
import threading
from pathlib import Path

import pytest

from eventlog.connection import Connection, Mechanism, Security, client_options
from rods.brokers.connection import connection_of, try_connection
from rods.errors import UserError
from rods.settings import PASSWORD_VARIABLE, Settings, load_settings, read_resolved, write_resolved
from rods.wiring import worker_specs

SECRET = "open sesame"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a cluster with a password from the environment."""
    file = tmp_path / "cluster.toml"
    file.write_text('broker = "k:9093"\n[connection]\nsecurity_protocol = "SASL_PLAINTEXT"\nusername = "rods"\n')
    monkeypatch.setenv(PASSWORD_VARIABLE, SECRET)
    return load_settings(file)


def with_connection(**given: str) -> Settings:
    return load_settings(flags={"broker": "k:9093", "connection": given})


def test_an_address_alone_asks_for_nothing() -> None:
    assert client_options("k:9092") == {"bootstrap_servers": "k:9092", "security_protocol": "PLAINTEXT"}


def test_a_connection_tells_clients_what_its_protocol_needs() -> None:
    plain = Connection("k:1,k:2", Security.SASL_PLAINTEXT, Mechanism.PLAIN, "rods", SECRET)
    assert client_options(plain) == {
        "bootstrap_servers": "k:1,k:2",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "rods",
        "sasl_plain_password": SECRET,
    }
    assert plain.addresses == ["k:1", "k:2"]


def test_a_password_shows_in_no_representation(cluster: Settings) -> None:
    for text in (repr(cluster), str(cluster), repr(connection_of(cluster)), str(connection_of(cluster))):
        assert SECRET not in text
    assert SECRET not in json.dumps(cluster.model_dump(mode="json"))
    assert SECRET not in cluster.model_dump_json()


def test_a_password_survives_a_copy_of_the_settings(cluster: Settings) -> None:
    copied = Settings.model_validate(cluster.model_copy(update={"folder": "elsewhere"}).model_dump())
    assert connection_of(copied).password == SECRET


def test_a_password_reaches_the_workers_by_their_environment_and_not_by_the_settings_file(
    cluster: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    write_resolved(cluster, file)
    assert SECRET not in file.read_text()
    for spec in worker_specs(cluster, file):
        assert SECRET not in " ".join(spec.command)
        monkeypatch.setenv(PASSWORD_VARIABLE, spec.environment[PASSWORD_VARIABLE])
        assert connection_of(read_resolved(file)).password == SECRET


def test_a_password_on_the_command_line_is_refused() -> None:
    with pytest.raises(UserError, match=PASSWORD_VARIABLE) as raised:
        with_connection(password=SECRET)
    assert SECRET not in str(raised.value)


def test_a_connection_that_is_no_table_is_one_sentence() -> None:
    with pytest.raises(UserError, match="connection"):
        load_settings(flags={"connection": "fast"})


def test_a_password_file_gives_its_first_line(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\nnot this\n")
    chosen = with_connection(security_protocol="SASL_PLAINTEXT", username="rods", password_file=str(file))
    assert connection_of(chosen).password == SECRET
    file.write_text("")
    with pytest.raises(UserError, match="nothing in its first line"):
        connection_of(chosen)
    file.unlink()
    with pytest.raises(UserError, match="cannot be read"):
        connection_of(chosen)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"security_protocol": "SASL_PLAINTEXT", "username": "rods"}, "needs a password"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "needs a user"),
        ({"security_protocol": "SSL", "ca_file": "/nowhere/ca.pem"}, "/nowhere/ca.pem cannot be read"),
    ],
)
def test_what_is_missing_is_named(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        connection_of(with_connection(**given))


def test_a_file_that_holds_no_certificates_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(UserError, match=r"ca\.pem cannot be read"):
        connection_of(with_connection(security_protocol="SSL", ca_file=str(tmp_path / "ca.pem")))


@pytest.mark.parametrize("broker", ["k", "k:9092,", "k:9092,x"])
def test_every_address_of_several_is_host_and_port(broker: str) -> None:
    with pytest.raises(UserError, match="HOST:PORT"):
        connection_of(load_settings(flags={"broker": broker}))


def test_one_broker_that_answers_is_enough(broker: str) -> None:
    try_connection(Connection(f"127.0.0.1:1,{broker}"), 0.0)


def test_what_hangs_up_is_told_from_what_is_silent() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def hang_up() -> None:
            listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        with pytest.raises(UserError, match="hangs up on PLAINTEXT"):
            try_connection(Connection(f"127.0.0.1:{listener.getsockname()[1]}"), 0.0)
    with pytest.raises(UserError, match="no Kafka broker answers"):
        try_connection(Connection("127.0.0.1:1"), 0.0)
