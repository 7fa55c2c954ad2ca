"""What `rods doctor` examines: each check asks the real part."""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rods.broker import EmbeddedBroker, create_topics
from rods.connection import connection_of, try_connection
from rods.errors import UserError
from rods.settings import EMBEDDED, Settings
from rods.task_sets import task_sets


class Health(StrEnum):
    """DEGRADED: it works, with less than the design asks for."""

    FINE = "fine"
    DEGRADED = "degraded"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check, in one sentence."""

    check: str
    health: Health
    detail: str


def examine(settings: Settings) -> list[Finding]:
    """Every check under these settings, in a fixed order. A check that fails is a finding, not an error."""
    checks: dict[str, Callable[[Settings], Finding]] = {
        "broker": _broker,
        "warehouse": _warehouse,
        "policy": _policy,
        "tasks": _tasks,
    }
    return [_guarded(name, check, settings) for name, check in checks.items()]


def _guarded(name: str, check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except (UserError, ImportError, OSError, ValueError) as error:
        return Finding(name, Health.BROKEN, str(error))


def _broker(settings: Settings) -> Finding:
    if settings.broker != EMBEDDED:
        try_connection(connection_of(settings), 5.0)
        return Finding("broker", Health.FINE, f"a Kafka broker answers at {settings.broker}")
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker(Path(folder) / "broker.log") as broker:
        topics = asyncio.run(create_topics(broker.address, settings.prefix, settings.partitions))
    detail = f"the embedded broker starts and makes {len(topics)} topics; it keeps nothing on disk, the archive does"
    return Finding("broker", Health.DEGRADED, detail)


def _warehouse(settings: Settings) -> Finding:
    import clickhouse_connect

    with tempfile.TemporaryDirectory() as folder:
        embedded = settings.warehouse == EMBEDDED
        client = clickhouse_connect.get_client(dsn=f"chdb://{folder}/probe" if embedded else settings.warehouse)
        try:
            version = client.query("SELECT version()").result_rows[0][0]
        finally:
            client.close()
    where = "the embedded ClickHouse engine" if embedded else "the ClickHouse server"
    return Finding("warehouse", Health.FINE, f"{where} answers, version {version}")


def _policy(settings: Settings) -> Finding:
    if settings.scripted:
        return Finding("policy", Health.FINE, "scripted: plays ground truths with seeded mistakes; nothing is trained")
    from learner.model import load_model

    model = load_model(settings.policy_folder)
    count = sum(parameter.numel() for parameter in model.parameters())
    return Finding("policy", Health.FINE, f"the model in {settings.policy_folder} loads, {count:,} parameters")


def _tasks(settings: Settings) -> Finding:
    sets = task_sets(settings)
    return Finding("tasks", Health.FINE, f"{sets.source}: {len(sets.originals)} to train, {len(sets.heldout)} held out")
