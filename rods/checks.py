"""What `rods doctor` examines: each check asks the real part."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from eventlog.connection import Connection
from rods.brokers.checks import examine_broker
from rods.brokers.connection import connection_of, try_connection
from rods.brokers.embedded import EmbeddedBroker
from rods.brokers.kafka import KafkaBroker
from rods.diagnosis import Diagnosis, broken, degraded, fine
from rods.errors import UserError
from rods.settings import EMBEDDED, KAFKA, Settings
from rods.task_sets import task_sets


def examine(settings: Settings) -> list[Diagnosis]:
    """Every check under these settings, in a fixed order. A check that fails is a finding, not an error."""
    checks: dict[str, Callable[[Settings], list[Diagnosis]]] = {
        "broker": _broker,
        "warehouse": _warehouse,
        "policy": _policy,
        "tasks": _tasks,
    }
    return [finding for name, check in checks.items() for finding in _guarded(name, check, settings)]


def _guarded(name: str, check: Callable[[Settings], list[Diagnosis]], settings: Settings) -> list[Diagnosis]:
    try:
        return check(settings)
    except (UserError, ImportError, OSError, ValueError) as error:
        return [broken(name, str(error))]


def _broker(settings: Settings) -> list[Diagnosis]:
    """A broker that a run would start is started for the time of the checks."""
    if not settings.starts_broker:
        connection = connection_of(settings)
        try_connection(connection, 5.0)
        there = fine("broker", f"a Kafka broker answers at {connection} ({connection.security})")
        return [there, *asyncio.run(examine_broker(connection, settings.prefix, settings.partitions))]
    with tempfile.TemporaryDirectory() as folder:
        log_file = Path(folder) / "broker.log"
        kafka = settings.broker == KAFKA
        with KafkaBroker(Path(folder) / "kafka", log_file) if kafka else EmbeddedBroker(log_file) as broker:
            examined = asyncio.run(examine_broker(Connection(broker.address), settings.prefix, settings.partitions))
    detail = "a Kafka broker starts; its log stays in the run folder"
    there = fine("broker", detail)
    if not kafka:
        detail = "the embedded broker starts; it keeps nothing on disk, the archive does"
        there = degraded("broker", detail)
    return [there, *examined]


def _warehouse(settings: Settings) -> list[Diagnosis]:
    import clickhouse_connect

    with tempfile.TemporaryDirectory() as folder:
        embedded = settings.warehouse == EMBEDDED
        client = clickhouse_connect.get_client(dsn=f"chdb://{folder}/probe" if embedded else settings.warehouse)
        try:
            version = client.query("SELECT version()").result_rows[0][0]
        finally:
            client.close()
    where = "the embedded ClickHouse engine" if embedded else "the ClickHouse server"
    return [fine("warehouse", f"{where} answers, version {version}")]


def _policy(settings: Settings) -> list[Diagnosis]:
    if settings.scripted:
        return [fine("policy", "scripted: plays ground truths with seeded mistakes; nothing is trained")]
    from learner.model import load_model

    model = load_model(settings.policy_folder)
    count = sum(parameter.numel() for parameter in model.parameters())
    return [fine("policy", f"the model in {settings.policy_folder} loads, {count:,} parameters")]


def _tasks(settings: Settings) -> list[Diagnosis]:
    sets = task_sets(settings)
    return [fine("tasks", f"{sets.source}: {len(sets.originals)} to train, {len(sets.heldout)} held out")]
