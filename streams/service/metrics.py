"""Prometheus figures of a streams worker. They observe and decide nothing.

Counts are those of this process since its start; what it folds again after a restart is counted again. Positions and
lags are read when they are asked for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from schemas.rollouts import FailureReason
from schemas.seals import PartitionSealed
from streams.service.notices import Notice

BATCHES = (1, 8, 32, 128, 512, 2048, 8192)
SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Standing(NamedTuple):
    """position: the next offset of a partition. end: the log's, as the last fetch saw it; None before one."""

    position: int
    end: int | None


Standings = Callable[[], Mapping[tuple[str, int], Standing]]


class StreamsMetrics:
    """One worker's registry and the figures in it."""

    def __init__(self, standings: Standings = dict) -> None:
        self.registry = CollectorRegistry()
        self._events = self._counter("events", "events taken, by stream", ["stream"])
        self._seals = self._counter("seals", "partition seals that the broker acknowledged")
        self._late = self._counter("late", "results of a step that was sealed before")
        self._duplicate = self._counter("duplicate", "second results of a group and second barriers")
        self._missing = self._counter("missing", "groups that a barrier expected and that were absent")
        self._refused = self._counter("refused", "events that no fold takes: dead letters and unexpected groups")
        self._failed = self._counter("failed_slots", "attempts without a reward, by reason", ["reason"])
        self._notices = self._counter("notices", "events passed over that an operator should hear of", ["notice"])
        for notice in Notice:
            self._notices.labels(notice)
        self._batch = Histogram(
            "rods_streams_batch_events", "events that one seal covers", buckets=BATCHES, registry=self.registry
        )
        self._recovery = Histogram(
            "rods_streams_recovery_seconds",
            "from an assignment to a state that may act",
            buckets=SECONDS,
            registry=self.registry,
        )
        self._assigned = Gauge(
            "rods_streams_partitions", "partitions of rods.rollouts that this worker holds", registry=self.registry
        )
        self.registry.register(_Standings(standings))

    def took(self, stream: str, events: int = 1) -> None:
        """Events were dealt with by a stream."""
        self._events.labels(stream).inc(events)

    def noticed(self, notice: Notice) -> None:
        """A stream passed something over."""
        self._notices.labels(notice).inc()

    def sealed(self, chunks: Iterable[PartitionSealed], covered: int) -> None:
        """A seal was acknowledged that covers so many events."""
        parts = list(chunks)
        self._seals.inc()
        self._batch.observe(covered)
        self._late.inc(parts[0].late)
        self._duplicate.inc(parts[0].duplicate)
        self._refused.inc(parts[0].refused)
        for group in [group for part in parts for group in part.groups]:
            if not group.execution:
                self._missing.inc()
                continue
            for reason in filter(None, group.reasons):
                self._failed.labels(reason if reason in _REASONS else "other").inc()

    def recovered(self, seconds: float, partitions: int) -> None:
        """An assignment was taken up."""
        self._recovery.observe(seconds)
        self._assigned.set(partitions)

    def revoked(self) -> None:
        """A rebalance took everything away, for now."""
        self._assigned.set(0)

    def _counter(self, name: str, text: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(f"rods_streams_{name}", text, labels, registry=self.registry)


_REASONS = frozenset(reason.value for reason in FailureReason)


class _Standings(Collector):
    """Positions and lags, when Prometheus asks."""

    def __init__(self, standings: Standings) -> None:
        self._standings = standings

    def collect(self) -> Iterator[GaugeMetricFamily]:
        labels = ["topic", "partition"]
        position = GaugeMetricFamily("rods_streams_position", "next offset of a partition", labels=labels)
        lag = GaugeMetricFamily("rods_streams_lag", "events between the position and the log's end", labels=labels)
        for (topic, partition), standing in self._standings().items():
            position.add_metric([topic, str(partition)], standing.position)
            if standing.end is not None:
                lag.add_metric([topic, str(partition)], max(0, standing.end - standing.position))
        yield position
        yield lag
