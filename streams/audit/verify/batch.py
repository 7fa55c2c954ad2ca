"""Events of one kind, column by column: what the checks of `verify` look at."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from schemas.catalogue import BY_KIND
from schemas.codec import HEADER_BYTES, MAGIC, fingerprint, schema_text, schema_versions
from schemas.rows import Layout, RowReader, Rows


class Batch:
    """Records of one type, one after the other."""

    def __init__(self, layout: Layout, columns: list[tuple[tuple[Any, ...], ...]], count: int) -> None:
        self.count = count
        self._layout, self._columns = layout, columns

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        """The values of a field; of one that holds records, how many of them each record has."""
        layout = self._layout
        place = layout.values[name] if name in layout.values else layout.items[name][0]
        columns = self._columns[layout.number]
        return columns[place] if columns else ()

    def part(self, name: str) -> "Batch":
        """The nested records of a field, one for each record."""
        return Batch(self._layout.parts[name], self._columns, self.count)

    def items(self, name: str) -> "Batch":
        """The records of a field that holds several, of all records one after the other."""
        return Batch(self._layout.items[name][1], self._columns, sum(self[name]))

    def records(self) -> Iterator[dict[str, Any]]:
        """As plain records again."""
        layout = self._layout
        within = {name: self.part(name).records() for name in layout.parts}
        several = {name: self.items(name).records() for name in layout.items}
        for number in range(self.count):
            record = {name: self[name][number] for name in layout.values}
            record |= {name: next(records) for name, records in within.items()}
            yield record | {
                name: [next(records) for _ in range(self[name][number])] for name, records in several.items()
            }


def kind_of_newest(frame: bytes) -> str | None:
    """The kind of a frame in the newest version of its schema; None for every other one."""
    return _newest().get(frame[:HEADER_BYTES])


def batch_of_frames(kind: str, frames: list[bytes]) -> Batch:
    """Events of a kind, all in its newest version. Raises ValueError where one is not plainly encoded."""
    reader = _reader(kind)
    rows = reader.empty()
    if reader.read_frames(frames, HEADER_BYTES, rows) != list(map(len, frames)):
        raise ValueError("a frame does not end where its event does")
    return _batch(reader, rows, len(frames))


def batch_of(kind: str, record: dict[str, Any]) -> Batch:
    """One event, of its plain record in the newest version."""
    reader = _reader(kind)
    rows = reader.empty()
    rows[0].append(tuple(reader.layout.row(record, rows)))
    return _batch(reader, rows, 1)


def _batch(reader: RowReader, rows: Rows, count: int) -> Batch:
    return Batch(reader.layout, [tuple(zip(*of_one, strict=True)) for of_one in rows], count)


@cache
def _reader(kind: str) -> RowReader:
    return RowReader(schema_text(kind, schema_versions(kind)[-1]))


@cache
def _newest() -> dict[bytes, str]:
    return {MAGIC + fingerprint(schema_text(kind, schema_versions(kind)[-1])): kind for kind in BY_KIND}


Check = Callable[[Batch], tuple[int, str] | None]
"""Takes records; the position of one that is wrong and why, in a few words, or None where all are right."""
