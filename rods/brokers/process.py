"""A broker as a process of this machine, on loopback: a port, a start that is waited for, an end.

What differs from broker to broker is its command and what a failed start was due to.
"""

import os
import socket
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from rods.errors import UserError
from rods.exec_with_parent import guarded

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 2.0
_KEPT_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG", "JAVA_HOME")
_LOOK_SECONDS = 0.02


class BrokerProcess(ABC):
    """Context manager; `address` is valid inside it. port 0 takes a free one.

    Entering raises UserError where the port is in use, the program is missing or does not answer. Enter it from a
    thread that outlives the run: the broker dies with that thread (see `exec_with_parent`).
    """

    NAME: ClassVar[str]
    START_SECONDS: ClassVar[float]
    PORTS: ClassVar[int]
    """Free ports that are tried, since another process may take one first."""

    def __init__(self, log_file: Path, port: int) -> None:
        self.log_file = log_file
        self.port = 0
        self._asked_port = port
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _start(self) -> "subprocess.Popen[bytes]":
        """A process that will listen on `port`. Raises UserError."""

    def _lost_its_port(self) -> bool:
        """Whether a start that failed may have been due to another process on the port."""
        return True

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

    def __enter__(self) -> Self:
        for left in reversed(range(1 if self._asked_port else self.PORTS)):
            self._start_on(self._asked_port)
            try:
                answers = self._answers()
            except BaseException:  # Ctrl-C while it starts
                self.stop()
                raise
            if answers:
                return self
            again = left and self._lost_its_port()
            self.stop()
            if not again:
                break
        raise UserError(f"the {self.NAME} broker does not start on port {self.port}; its log is {self.log_file}")

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the broker by SIGTERM, by SIGKILL where that takes too long. Does nothing where it has ended."""
        if self._process is not None:
            stop_process(self._process, STOP_SECONDS)

    def _start_on(self, port: int) -> None:
        """It is not ready yet."""
        self.port = claim_port(port)
        self._process = self._start()

    def _answers(self) -> bool:
        end = time.monotonic() + self.START_SECONDS
        while self.alive and time.monotonic() < end:
            if speaks_kafka(LOOPBACK, self.port):
                return self.alive
            time.sleep(_LOOK_SECONDS)
        return False


def start_process(command: Sequence[str], log_file: Path) -> "subprocess.Popen[bytes]":
    """A process that writes to a log and is bound to the life of the calling thread."""
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("ab") as log:
        return subprocess.Popen(
            guarded(list(command)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=kept_environment(),
            start_new_session=True,
        )


def kept_environment() -> dict[str, str]:
    """What of this process's environment a broker gets: no settings, and so no password."""
    return {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}


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
