"""How one streams process runs. Nothing here decides anything: rules travel in the barriers."""

from dataclasses import dataclass
from pathlib import Path

from eventlog.connection import Broker


@dataclass(frozen=True, slots=True)
class StreamsSettings:
    """broker: how to reach it. partitions: N of the run. data_dir: a folder that the process may use.

    session_seconds: how long the broker waits for a dead worker. A joining worker waits for up to half of it on the
    embedded broker. topics_seconds: how long the start waits for the run's topics to exist. buffer: events read ahead
    of each agent. blocked_seconds, stuck_seconds: how long the event loop may be blocked, and a position stand still
    before the log's end, until the process ends to be restarted. metrics_port: where on loopback the figures are; 0:
    nowhere. metrics_ports: how many ports from there on the run's workers share.
    """

    broker: Broker
    prefix: str
    partitions: int
    data_dir: Path
    session_seconds: float = 6.0
    rebalance_seconds: float = 10.0
    topics_seconds: float = 30.0
    buffer: int = 4096
    blocked_seconds: float = 30.0
    stuck_seconds: float = 30.0
    metrics_port: int = 0
    metrics_ports: int = 1

    @property
    def app_id(self) -> str:
        """Faust app and consumer group."""
        return f"{self.prefix}streams"
