"""Apache Kafka on this machine: one KRaft broker from an unpacked Kafka, its log in the run folder.

Unlike the embedded broker's, the log survives: a stop, a `kill -9`, and a restart of everything on other ports.
"""

import base64
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from types import TracebackType

from rods.broker import KEPT_ENVIRONMENT, LOOPBACK, claim_port, speaks_kafka, stop_process
from rods.errors import UserError
from rods.exec_with_parent import guarded

START_SECONDS = 60.0
STOP_SECONDS = 2.0
JAVA_VERSION = 17
_INFRA = Path(__file__).resolve().parents[1] / "infra" / "kafka"
_FREE_PORT_TRIES = 3
_HEAP = "512m"


@dataclass(frozen=True, slots=True)
class KafkaHome:
    """An unpacked Apache Kafka (`libs/`) and the Java that runs it."""

    libs: Path
    java: str

    def command(self, main: str, *arguments: str, heap: str = _HEAP) -> list[str]:
        """The command line of one of Kafka's programs."""
        options = [f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"]
        logs = f"-Dlog4j2.configurationFile={_INFRA / 'log4j2.properties'}"
        return [self.java, *options, logs, "-cp", f"{self.libs}/*", main, *arguments]

    def format(self, properties: Path, cluster: str, *arguments: str) -> None:
        """Prepares the data folder that the properties name. Raises UserError."""
        tool = ["format", "-t", cluster, "-c", str(properties), *arguments]
        command = self.command("kafka.tools.StorageTool", *tool, heap="128m")
        done = subprocess.run(command, capture_output=True, text=True, env=kept_environment(), check=False)
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
            raise UserError(f"Kafka cannot prepare its data folder: {words[-1]}")

    def start(self, properties: Path, log_file: Path) -> subprocess.Popen[bytes]:
        """A broker process, bound to the life of the calling thread. It is not ready yet."""
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as log:
            return subprocess.Popen(
                guarded(self.command("kafka.Kafka", str(properties))),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=kept_environment(),
                start_new_session=True,
            )


def find_kafka(environment: Mapping[str, str] = os.environ) -> KafkaHome:
    """The Kafka that KAFKA_HOME names, and a Java from JAVA_HOME or PATH. Raises UserError."""
    home = environment.get("KAFKA_HOME", "")
    if not home:
        raise UserError("--broker kafka needs Apache Kafka: set KAFKA_HOME to an unpacked one (the folder with libs/)")
    libs = Path(home).resolve() / "libs"
    if not any(libs.glob("kafka_*.jar")):
        raise UserError(f"KAFKA_HOME={home} holds no Apache Kafka: there is no libs/kafka_*.jar in it")
    return KafkaHome(libs, _find_java(environment))


def _find_java(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME", "")
    asked = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(asked, path=environment.get("PATH"))
    if found is None:
        raise UserError(f"--broker kafka needs Java {JAVA_VERSION} or newer: there is no {asked}")
    shown = subprocess.run([found, "-version"], capture_output=True, text=True, env=kept_environment(), check=False)
    version = re.search(r'version "(\d+)', shown.stderr)
    if version is None or int(version[1]) < JAVA_VERSION:
        words = version[0] if version else "a Java that does not say its version"
        raise UserError(f"--broker kafka needs Java {JAVA_VERSION} or newer: {found} is {words}")
    return found


class KafkaBroker:
    """One broker over a data folder. Context manager; `address` is valid inside it.

    A folder that holds data is continued, with its cluster id. port 0 takes a free one. Raises UserError where Kafka or
    Java is missing, the port is in use or the broker does not answer. Enter it from a thread that outlives the run: the
    broker dies with that thread (see `exec_with_parent`).
    """

    def __init__(self, folder: Path, log_file: Path, port: int = 0, home: KafkaHome | None = None) -> None:
        self._folder = folder
        self._log_file = log_file
        self._asked_port = port
        self._home = home or find_kafka()
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

    @property
    def cluster(self) -> str:
        """The id of the data folder's cluster; empty before the first start."""
        try:
            found = re.search(r"^cluster\.id=(.+)$", (self._data / "meta.properties").read_text(), re.MULTILINE)
        except OSError:
            return ""
        return found[1].strip() if found else ""

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def __enter__(self) -> "KafkaBroker":
        for left in reversed(range(1 if self._asked_port else _FREE_PORT_TRIES)):
            self._start(self._asked_port)
            try:
                answers = self._answers()
            except BaseException:  # Ctrl-C while it starts
                self.stop()
                raise
            if answers:
                return self
            ended = not self.alive
            self.stop()
            if not (left and ended and self._lost_its_port()):
                break
        raise UserError(f"the Kafka broker does not start on port {self.port}; its log is {self._log_file}")

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the broker by SIGTERM, by SIGKILL where that takes too long; what it acknowledged stays either way."""
        if self._process is not None:
            stop_process(self._process, STOP_SECONDS)

    def start_again(self) -> None:
        """Starts a broker that has ended, on its port and over its data. It is not ready yet. Raises UserError."""
        self._start(self.port)

    def _start(self, port: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self.port = claim_port(port)
        properties = self._folder / "broker.properties"
        properties.write_text(broker_properties(self._data, self.port, claim_port(0)))
        if not self.cluster:
            self._home.format(properties, new_cluster_id())
        self._process = self._home.start(properties, self._log_file)

    def _answers(self) -> bool:
        end = time.monotonic() + START_SECONDS
        while self.alive and time.monotonic() < end:
            if speaks_kafka(LOOPBACK, self.port):
                return self.alive
            time.sleep(0.05)
        return False

    def _lost_its_port(self) -> bool:
        return b"Address already in use" in self._log_file.read_bytes()[-20_000:]


def broker_properties(data: Path, port: int, controller: int) -> str:
    """`infra/kafka/broker.properties`, filled in."""
    template = Template((_INFRA / "broker.properties").read_text(encoding="utf-8").split("\n\n", 1)[1])
    return template.substitute(data=_escaped(str(data.resolve())), port=port, controller=controller)


def _escaped(text: str) -> str:
    """A value in a Java properties file. A comma would part it in two folders."""
    if "," in text:
        raise UserError(f"Kafka cannot keep its data in {text}: a comma parts two folders; choose another --folder")
    return text.replace("\\", "\\\\")


def new_cluster_id() -> str:
    """A random id in Kafka's form: 16 bytes, url-safe base64. It decides nothing.

    None that begins with a dash, which Kafka's tool takes for an option.
    """
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


def kept_environment() -> dict[str, str]:
    """What of this process's environment a broker gets: no settings, and so no password."""
    return {name: os.environ[name] for name in (*KEPT_ENVIRONMENT, "JAVA_HOME") if name in os.environ}
