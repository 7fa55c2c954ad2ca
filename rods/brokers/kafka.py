"""Apache Kafka on this machine: one KRaft broker from an unpacked Kafka, its log in the run folder.

Unlike the embedded broker's, the log survives: a stop, a `kill -9`, and a restart of everything on other ports.
"""

import base64
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from rods.brokers.process import BrokerProcess, claim_port, kept_environment, start_process
from rods.errors import UserError

JAVA_VERSION = 17
_INFRA = Path(__file__).resolve().parents[2] / "infra" / "kafka"
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
        return start_process(self.command("kafka.Kafka", str(properties)), log_file)


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


class KafkaBroker(BrokerProcess):
    """One broker over a data folder; one that holds data is continued, with its cluster id. What it acknowledged stays,
    however it ends. Raises UserError where Kafka or Java is missing."""

    NAME, START_SECONDS, PORTS = "Kafka", 60.0, 3

    def __init__(self, folder: Path, log_file: Path, port: int = 0, home: KafkaHome | None = None) -> None:
        super().__init__(log_file, port)
        self._folder = folder
        self._home = home or find_kafka()

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

    def start_again(self) -> None:
        """Starts a broker that has ended, on its port and over its data. It is not ready yet. Raises UserError."""
        self._start_on(self.port)

    def _start(self) -> "subprocess.Popen[bytes]":
        self._folder.mkdir(parents=True, exist_ok=True)
        properties = self._folder / "broker.properties"
        properties.write_text(broker_properties(self._data, self.port, claim_port(0)))
        if not self.cluster:
            self._home.format(properties, new_cluster_id())
        return self._home.start(properties, self.log_file)

    def _lost_its_port(self) -> bool:
        return not self.alive and b"Address already in use" in self.log_file.read_bytes()[-20_000:]


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
