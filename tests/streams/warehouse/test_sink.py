import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from eventlog.client import log_producer
from eventlog.writer import send
from rods.brokers.embedded import create_topics
from schemas.catalogue import EVENT_TYPES
from schemas.codec import MAGIC, encode
from schemas.envelope import Producer, stamp
from schemas.epochs import EpochClosed, EpochOpened, StepOpened
from schemas.pool import PoolMaterialized
from schemas.rollouts import TaskMeasured
from schemas.rules import LearnerRules, Rules
from schemas.topics import KINDS, Topic
from streams.warehouse.dashboard import Dashboard
from streams.warehouse.errors import WarehouseError
from streams.warehouse.panels import EVALUATION, PANELS, Chart
from streams.warehouse.sink import WarehouseSettings, sink_until
from streams.warehouse.store import Warehouse
from streams.warehouse.tables import table_of
from tests.golden import events
from tests.log_writing import send_all

ROOT = Path(__file__).resolve().parents[3]
WORKER = (
    "import sys; from streams.warehouse.sink import WarehouseSettings, run_warehouse\n"
    "run_warehouse(WarehouseSettings(sys.argv[1], 'kill.', 2, sys.argv[2], int(sys.argv[3]), flush_seconds=0.05))"
)


def _measured(task: str, zone: str, epoch: int = 1, **changes: Any) -> TaskMeasured:
    event: TaskMeasured = replace(
        events.sample(TaskMeasured, "full"), task=task, zone=zone, epoch=epoch, purpose="train", live=4, **changes
    )
    return event


async def _write(broker: str, topic: str, partition: int, written: list[Any]) -> None:
    async with log_producer(broker) as producer:
        await send_all(producer, topic, partition, [("key", encode(event)) for event in written])


async def _sink_once(settings: WarehouseSettings) -> None:
    stopping = asyncio.Event()
    stopping.set()
    await sink_until(settings, stopping)


async def _get(url: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, await response.text()


async def test_every_event_of_every_kind_lands_once_however_often_the_sink_starts(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "all.", 2)
    for topic in Topic:
        kinds = [kind for kind in EVENT_TYPES if kind.KIND in KINDS[topic]]
        written = [events.sample(kind, filling) for kind in kinds for filling in events.SAMPLES]
        await _write(broker, topic.named("all."), 0, written)
    settings = WarehouseSettings(broker, "all.", 2, f"chdb://{tmp_path}/ch")
    for _ in range(2):
        await _sink_once(settings)
    await _write(broker, "all.measurements", 1, [_measured("late", "hard")])
    await _sink_once(settings)
    async with Warehouse(settings.dsn) as warehouse:
        for topic in Topic:
            table = topic.value.replace("-", "_")
            counted = (await warehouse.query(f"SELECT count(), uniqExact(partition, offset) FROM `{table}`")).rows
            expected = 2 * len(KINDS[topic]) + (topic is Topic.MEASUREMENTS)
            assert counted == ((expected, expected),)
        for panel in PANELS:
            answer = await warehouse.query(panel.sql, {"prefix": "all."})
            assert panel.chart is Chart.TABLE or len(answer.columns) == 3, panel.title
            assert (await warehouse.query(panel.sql, {"prefix": "other."})).rows == (), panel.title


async def test_rows_that_are_inserted_again_are_counted_once_with_final(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "again.", 1)
    await _write(broker, "again.measurements", 0, [_measured("a", "hard"), _measured("b", "boundary")])
    settings = WarehouseSettings(broker, "again.", 1, f"chdb://{tmp_path}/ch")
    await _sink_once(settings)
    async with Warehouse(settings.dsn) as warehouse:
        before = await warehouse.query("SELECT * FROM measurements")
        await warehouse.insert(table_of(Topic.MEASUREMENTS), [list(row) for row in before.rows])
        assert (await warehouse.query("SELECT count() FROM measurements FINAL")).rows == ((2,),)


async def test_an_event_of_a_newer_schema_stops_its_partition_and_no_other(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "newer.", 2)
    await _write(broker, "newer.measurements", 0, [_measured("before", "hard")])
    async with log_producer(broker) as producer:
        await send(producer, "newer.measurements", 0, "key", MAGIC + bytes(12))
    await _write(broker, "newer.measurements", 0, [_measured("behind", "hard")])
    await _write(broker, "newer.measurements", 1, [_measured("elsewhere", "hard")])
    settings = WarehouseSettings(broker, "newer.", 2, f"chdb://{tmp_path}/ch")
    await _sink_once(settings)
    async with Warehouse(settings.dsn) as warehouse:
        tasks = (await warehouse.query("SELECT task FROM measurements FINAL ORDER BY task")).rows
        assert tasks == (("before",), ("elsewhere",))
        assert await warehouse.next_offsets("newer.") == {
            ("newer.measurements", 0): 1,
            ("newer.measurements", 1): 1,
        }


def _start(broker: str, dsn: str, port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, broker, dsn, str(port)], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


async def _until_it_shows(worker: subprocess.Popen[bytes], port: int, groups: int) -> None:
    while True:
        assert worker.poll() is None
        with contextlib.suppress(aiohttp.ClientError):
            _, text = await _get(f"http://127.0.0.1:{port}/panels/0")
            if sum(row[2] for row in json.loads(text)["rows"]) >= groups:
                return
        await asyncio.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.slow
async def test_a_killed_sink_goes_on_where_its_tables_end(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "kill.", 2)
    dsn = f"chdb://{tmp_path}/ch"
    await _write(broker, "kill.measurements", 0, [_measured(f"t{number}", "hard") for number in range(500)])
    port = _free_port()
    worker = _start(broker, dsn, port)
    await _until_it_shows(worker, port, 1)
    worker.kill()
    worker.wait()
    worker = _start(broker, dsn, port)
    await _until_it_shows(worker, port, 1)
    await _write(broker, "kill.measurements", 0, [_measured(f"t{number}", "hard") for number in range(500, 700)])
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    async with Warehouse(dsn) as warehouse:
        counted = await warehouse.query("SELECT count(), uniqExact(task) FROM measurements FINAL")
    assert counted.rows == ((700, 700),)


async def test_the_page_answers_with_panels_by_number_and_nothing_else(broker: str, tmp_path: Path) -> None:
    await create_topics(broker, "page.", 1)
    zones = ["boundary", "hard", "boundary", "mastered"]
    await _write(broker, "page.measurements", 0, [_measured(str(n), zone) for n, zone in enumerate(zones)])
    await _write(broker, "page.pool", 0, [replace(events.sample(PoolMaterialized, "full"), epoch=0)])
    settings = WarehouseSettings(broker, "page.", 1, f"chdb://{tmp_path}/ch")
    await _sink_once(settings)
    async with Warehouse(settings.dsn) as warehouse, Dashboard(warehouse, "page.", 0) as dashboard:
        assert dashboard.address.startswith("http://127.0.0.1:")
        status, page = await _get(dashboard.address)
        assert status == 200
        assert "https://" not in page
        _, text = await _get(dashboard.address + "panels/0")
        assert json.loads(text)["rows"] == [[1, "boundary", 2], [1, "hard", 1], [1, "mastered", 1]]
        for number, panel in enumerate(PANELS):
            status, text = await _get(f"{dashboard.address}panels/{number}")
            assert (status, json.loads(text)["title"]) == (200, panel.title)
        assert (await _get(f"{dashboard.address}panels/{len(PANELS)}"))[0] == 404
        assert (await _get(dashboard.address + "panels/select"))[0] == 404
        assert (await _get(dashboard.address, Host="attacker.example"))[0] == 403


def _of_run(event: Any) -> Any:
    return stamp(event, run_id="the-run", occurred_at=1, producer=Producer.LEARNER)


async def test_the_page_says_which_run_it_shows_how_far_it_is_and_what_it_does_without(
    broker: str, tmp_path: Path
) -> None:
    await create_topics(broker, "run.", 1)
    settings = WarehouseSettings(broker, "run.", 1, f"chdb://{tmp_path}/ch")
    rules = Rules(epochs=2, learner=LearnerRules(evaluate_tasks=0))
    opened = [replace(events.sample(EpochOpened, "full"), epoch=n, rules=rules.canonical()) for n in (1, 2)]
    begun = [*opened, replace(events.sample(StepOpened, "full"), epoch=2, step=7)]
    await _sink_once(settings)
    async with Warehouse(settings.dsn) as warehouse, Dashboard(warehouse, "run.", 0) as dashboard:
        assert json.loads((await _get(dashboard.address + "run"))[1]) == {}
    await _write(broker, "run.epochs", 0, [_of_run(event) for event in begun])
    await _sink_once(settings)
    expected = {"run": "the-run", "epoch": 2, "epochs": 2, "step": 7, "finished": False, "without": [EVALUATION]}
    async with Warehouse(settings.dsn) as warehouse, Dashboard(warehouse, "run.", 0) as dashboard:
        assert json.loads((await _get(dashboard.address + "run"))[1]) == expected
    await _write(broker, "run.epochs", 0, [_of_run(replace(events.sample(EpochClosed, "full"), epoch=2))])
    await _sink_once(settings)
    async with Warehouse(settings.dsn) as warehouse, Dashboard(warehouse, "run.", 0) as dashboard:
        assert json.loads((await _get(dashboard.address + "run"))[1]) == {**expected, "finished": True}


async def test_a_dashboard_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with Warehouse(f"chdb://{tmp_path}/ch") as warehouse:
            with pytest.raises(WarehouseError, match=f"port {port} is in use"):
                async with Dashboard(warehouse, "rods.", port):
                    pass


async def test_a_warehouse_that_does_not_answer_is_one_sentence_without_the_password() -> None:
    with pytest.raises(WarehouseError, match=r"127\.0\.0\.1:1/rods cannot be opened") as error:
        async with Warehouse("http://someone:hidden@127.0.0.1:1/rods"):
            pass
    assert "hidden" not in str(error.value)
