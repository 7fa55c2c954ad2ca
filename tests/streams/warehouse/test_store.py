from pathlib import Path

from eventlog.reader import LogRecord
from schemas.codec import encode
from schemas.rollouts import TaskMeasured
from schemas.topics import Topic
from streams.warehouse.store import Warehouse
from streams.warehouse.tables import Row, row_of, table_of
from tests.golden import events


def row(prefix: str, partition: int, offset: int) -> Row:
    value = encode(events.sample(TaskMeasured, "full"))
    topic = Topic.MEASUREMENTS
    return row_of(topic, LogRecord(topic.named(prefix), partition, offset, 1_000, b"key", value, ()))


async def test_rows_at_and_behind_an_end_are_forgotten_and_no_others(tmp_path: Path) -> None:
    table = table_of(Topic.MEASUREMENTS)
    async with Warehouse(f"chdb://{tmp_path}/ch") as warehouse:
        places = [("rods.", 0), ("rods.", 1), ("other.", 0)]
        await warehouse.insert(table, [row(prefix, number, offset) for prefix, number in places for offset in range(5)])
        await warehouse.forget_behind("rods.", {(Topic.MEASUREMENTS, 0): 3, (Topic.MEASUREMENTS, 1): 0})
        left = await warehouse.query(f"SELECT topic, partition, offset FROM `{table.name}` FINAL ORDER BY ALL")
        assert left.rows == tuple(
            [("other.measurements", 0, n) for n in range(5)] + [("rods.measurements", 0, n) for n in range(3)]
        )
        assert (await warehouse.next_offsets("rods.")) == {("rods.measurements", 0): 3}
