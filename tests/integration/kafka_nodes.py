"""Apache Kafka as an operator runs it: a broker with TLS and passwords, or a cluster of several."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rods.brokers.kafka import KafkaHome, broker_properties, find_kafka, new_cluster_id
from rods.brokers.process import claim_port, speaks_kafka, stop_process

USER, PASSWORD = "rods", "one-time: pass word"
START_SECONDS = 240.0


@dataclass(slots=True)
class Node:
    """One Kafka process."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        """As a crash would: no handler runs."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass(frozen=True, slots=True)
class SecureBroker:
    """One broker with a listener of each kind. ca_file signs its certificate."""

    plaintext: str
    sasl_plaintext: str
    sasl_ssl: str
    ssl: str
    ca_file: Path


@dataclass(slots=True)
class Cluster:
    """Brokers 1, 2, ... of one cluster."""

    nodes: list[Node] = field(default_factory=list)

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def node(self, broker: int) -> Node:
        return self.nodes[broker - 1]


@contextmanager
def secure_broker(folder: Path) -> Iterator[SecureBroker]:
    """PLAINTEXT, SASL_PLAINTEXT with PLAIN, SASL_SSL with SCRAM, and SSL; the user is USER."""
    ca_file, keystore = _certificates(folder)
    kinds = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
    ports = {kind: claim_port(0) for kind in kinds}
    controller = claim_port(0)
    urls = ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in ports.items())
    login = "org.apache.kafka.common.security"
    more = {
        "listeners": f"{urls},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": urls,
        "listener.security.protocol.map": ",".join(f"{kind}:{kind}" for kind in kinds) + ",CONTROLLER:PLAINTEXT",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{login}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
    }
    users = [
        part
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for part in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
    ]
    node = _start(find_kafka(), folder, ports["PLAINTEXT"], controller, new_cluster_id(), more, users)
    try:
        _wait([node])
        at = {kind: f"127.0.0.1:{port}" for kind, port in ports.items()}
        yield SecureBroker(at["PLAINTEXT"], at["SASL_PLAINTEXT"], at["SASL_SSL"], at["SSL"], ca_file)
    finally:
        stop_process(node.process, 10)


@contextmanager
def cluster(folder: Path, brokers: int = 3) -> Iterator[Cluster]:
    """So many brokers, each a controller too, with what they keep for themselves on all of them."""
    home, identity, made = find_kafka(), new_cluster_id(), Cluster()
    ports = [(claim_port(0), claim_port(0)) for _ in range(brokers)]
    try:
        for number, (port, controller) in enumerate(ports, 1):
            voters = ",".join(f"{voter}@127.0.0.1:{other}" for voter, (_, other) in enumerate(ports, 1))
            more = {
                "node.id": str(number),
                "controller.quorum.voters": voters,
                "offsets.topic.replication.factor": str(brokers),
                "transaction.state.log.replication.factor": str(brokers),
                "transaction.state.log.min.isr": str(brokers - 1),
                "default.replication.factor": str(brokers),
                "controller.quorum.election.timeout.ms": "500",
                "controller.quorum.fetch.timeout.ms": "1000",
            }
            made.nodes.append(_start(home, folder / str(number), port, controller, identity, more))
        _wait(made.nodes)
        yield made
    finally:
        for node in made.nodes:
            node.process.terminate()
        for node in made.nodes:
            stop_process(node.process, 5)


def _start(
    home: KafkaHome,
    folder: Path,
    port: int,
    controller: int,
    identity: str,
    more: Mapping[str, str],
    formatting: Sequence[str] = (),
) -> Node:
    """`more` stands over the shipped properties."""
    folder.mkdir(parents=True, exist_ok=True)
    properties = folder / "broker.properties"
    lines = [f"{name}={value}" for name, value in more.items()]
    properties.write_text(broker_properties(folder / "data", port, controller) + "\n".join(lines) + "\n")
    home.format(properties, identity, *formatting)
    return Node(port, home.start(properties, folder / "log"))


def _wait(nodes: Sequence[Node]) -> None:
    end = time.monotonic() + START_SECONDS
    while not all(speaks_kafka("127.0.0.1", node.port) for node in nodes):
        assert all(node.process.poll() is None for node in nodes), "a broker ended"
        assert time.monotonic() < end, "a broker does not start"
        time.sleep(0.1)


def _certificates(folder: Path) -> tuple[Path, Path]:
    """A certificate authority's certificate, and the key and certificate it gave 127.0.0.1."""
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    _openssl(folder, "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=tests")
    name = ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
    _openssl(folder, "req", *new, "-keyout", "broker.key", "-out", "broker.csr", *name)
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-copy_extensions", "copy"]
    _openssl(folder, "x509", "-req", "-in", "broker.csr", *signed, "-out", "broker.crt")
    keystore = folder / "broker.pem"
    keystore.write_text((folder / "broker.key").read_text() + (folder / "broker.crt").read_text())
    return folder / "ca.pem", keystore


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
