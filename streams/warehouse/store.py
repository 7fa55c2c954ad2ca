"""The warehouse itself, embedded (``chdb:///absolute/folder``) or a server (``http://host:port/database``).

One thread does everything: the embedded engine takes one process a folder, and a client one query at a time.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import clickhouse_connect

from eventlog.standstill import Place
from schemas.topics import Topic
from streams.warehouse.errors import WarehouseError
from streams.warehouse.tables import Row, Table, table_of

T = TypeVar("T")

# Servers and the embedded engine differ in their defaults; rows are deduplicated by their place in the log alone.
_INSERT_SETTINGS = {"async_insert": 0, "insert_deduplicate": 0, "deduplicate_blocks_in_dependent_materialized_views": 0}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class Warehouse:
    """Async context manager. Entering it makes the tables. Raises WarehouseError where it cannot be opened."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._thread = ThreadPoolExecutor(1, "warehouse")
        self._client: Any = None

    async def __aenter__(self) -> "Warehouse":
        try:
            await self._do(self._open)
        except Exception as error:
            self._thread.shutdown(wait=False)
            raise WarehouseError(f"the warehouse {_shown(self._dsn)} cannot be opened: {_first_line(error)}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._do(self._client.close)
        self._thread.shutdown()

    async def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Adds rows in one block: all of them or none. Adding a row again changes nothing that is read with FINAL."""
        await self._do(
            lambda: self._client.insert(
                table.name,
                rows,
                column_names=list(table.columns),
                column_type_names=list(table.columns.values()),
                settings=_INSERT_SETTINGS,
            )
        )

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Runs a query of ours; values from outside come in as parameters alone."""
        result = await self._do(lambda: self._client.query(sql, parameters=dict(parameters or {})))
        return Answer(tuple(result.column_names), tuple(tuple(row) for row in result.result_rows))

    async def next_offsets(self, prefix: str) -> dict[Place, int]:
        """One past the largest offset in the tables, for each place of a run that has any row."""
        found: dict[Place, int] = {}
        for topic in Topic:
            name = topic.named(prefix)
            answer = await self.query(
                f"SELECT partition, max(offset) + 1 FROM `{table_of(topic).name}` "  # noqa: S608  # our own table's name
                "WHERE topic = {topic:String} GROUP BY partition",
                {"topic": name},
            )
            found |= {(name, int(partition)): int(offset) for partition, offset in answer.rows}
        return found

    async def forget_behind(self, prefix: str, ends: Mapping[tuple[Topic, int], int]) -> None:
        """Deletes the rows of a run at and behind these offsets, gone when this returns."""
        for (topic, partition), end in ends.items():
            await self._do(partial(self._delete, table_of(topic).name, topic.named(prefix), partition, end))

    def _delete(self, table: str, topic: str, partition: int, end: int) -> None:
        self._client.command(
            f"DELETE FROM `{table}` WHERE topic = {{topic:String}} "  # noqa: S608  # our own table's name
            "AND partition = {partition:UInt32} AND offset >= {end:UInt64}",
            parameters={"topic": topic, "partition": partition, "end": end},
        )

    def _open(self) -> None:
        self._client = clickhouse_connect.get_client(dsn=self._dsn)
        for table in map(table_of, Topic):
            self._client.command(table.create())
            self._client.command(table.extend())

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _shown(dsn: str) -> str:
    """A DSN without its password."""
    scheme, separator, rest = dsn.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:300]
