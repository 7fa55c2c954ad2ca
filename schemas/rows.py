"""Many Avro bodies of one schema: rows of plain values, by a reader that is compiled from the schema.

A scan meets millions of events of a few kinds. Their schema is made into the source of one Python function, as
`dataclasses` makes an ``__init__``, which takes half the time of a decoder that looks at the schema field by field.

A record becomes a tuple: its fields in order, a nested record's fields in its place, and of an array of records only
how many there are; those records are rows of a list of their own. An array of booleans is `bytes`; every other array,
and an empty one, is a tuple.

What is legal Avro but never written here (several blocks, a block with its size, an integer of ten bytes, a boolean
beyond 1) raises ValueError: such a body is for `schemas.codec`, which takes all that is legal.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Rows = list[list[tuple[Any, ...]]]
"""The rows of every layout of a reader, by `Layout.number`."""

_LONGEST_SHIFT = 56


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of a record type stand.

    number: of the list that its rows are in.
    values: name to position in the row.
    parts: of a nested record, which shares the row.
    items: of an array of records: the position of their number, and their layout.
    """

    number: int
    values: dict[str, int]
    parts: dict[str, "Layout"]
    items: dict[str, tuple[int, "Layout"]]

    def row(self, record: dict[str, Any], rows: Rows) -> list[Any]:
        """The row of a plain record as `schemas.codec.decode_plain` gives it. Adds the rows of its arrays."""
        found: dict[int, Any] = {place: _cell(record[name]) for name, place in self.values.items()}
        for name, part in self.parts.items():
            inner = part.row(record[name], rows)
            first = min(part.places())
            found |= {first + number: value for number, value in enumerate(inner)}
        for name, (place, layout) in self.items.items():
            found[place] = len(record[name])
            for item in record[name]:
                rows[layout.number].append(tuple(layout.row(item, rows)))
        return [found[place] for place in sorted(found)]

    def places(self) -> Iterator[int]:
        """The positions in the row that are this record's."""
        yield from self.values.values()
        yield from (place for place, _ in self.items.values())
        for part in self.parts.values():
            yield from part.places()


def _cell(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return bytes(value) if value and all(isinstance(item, bool) for item in value) else tuple(value)


class RowReader:
    """Reads bodies of one schema. most_items: of an array of records, where a limit is set."""

    def __init__(self, schema: dict[str, Any], most_items: int | None = None) -> None:
        source = _Source(most_items)
        self.layout = source.layout(schema)
        self._lists = source.lists
        self._read = source.compiled()

    def empty(self) -> Rows:
        """Lists for rows."""
        return [[] for _ in range(self._lists)]

    def read_frames(self, frames: list[bytes], start: int, rows: Rows) -> list[int]:
        """Adds the rows of a body in each frame; where each body ends. Raises ValueError, with some rows added."""
        adds = [of_one.append for of_one in rows]
        with _told():
            return [self._read(frame, start, *adds) for frame in frames]

    def read_block(self, data: bytes, count: int, rows: Rows) -> int:
        """The same for bodies that follow each other from the first byte on; where the last one ends."""
        adds, at = [of_one.append for of_one in rows], 0
        with _told():
            for _ in range(count):
                at = self._read(data, at, *adds)
        return at


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (IndexError, ValueError, OverflowError, struct.error) as error:
        raise ValueError("a body is not plainly encoded") from error


def long_at(data: bytes, at: int) -> tuple[int, int]:
    """The integer that begins here, and where it ends. Raises ValueError."""
    with _told():
        short = _LONGS[data[at]]
        return _long(data, at) if short is None else (short, at + 1)


def _long(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag varint of at least two bytes and at most nine, and where it ends."""
    last = data[at + 1]
    value = data[at] & 0x7F | (last & 0x7F) << 7
    at, shift = at + 2, 14
    while last > 0x7F:
        if shift > _LONGEST_SHIFT:
            raise ValueError("an integer of ten bytes")
        last = data[at]
        value |= (last & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return (value >> 1) ^ -(value & 1), at


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A length and where it ends. Not larger than the data, so that nothing of that size is made in vain."""
    value, at = _long(data, at) if data[at] > 0x7F else (-1, at)
    if not 0 <= value <= len(data):
        raise ValueError("a length beyond the data, or a block with its size")
    return value, at


_LONGS = tuple([(byte >> 1) ^ -(byte & 1) if byte < 0x80 else None for byte in range(256)])
_PAIRS = tuple([(value >> 1) ^ -(value & 1) if value < 1 << 14 else None for value in range(1 << 15)])
"""Integers of two bytes, by the seven low bits of the first and all of the second."""
_SIZES = tuple([None if byte & 0x81 else byte >> 1 for byte in range(256)])
_GIVEN = {
    "LONGS": _LONGS,
    "PAIRS": _PAIRS,
    "SIZES": _SIZES,
    "long": _long,
    "size": _size,
    "double": struct.Struct("<d").unpack_from,
    "doubles": lambda data, at, count: struct.unpack_from(f"<{count}d", data, at),
}


class _Source:
    """The reader's source as it grows: `at` is where the next value begins, `n` a length."""

    def __init__(self, most_items: int | None) -> None:
        self.lists = 1
        self._most_items = most_items
        self._lines: list[str] = []
        self._variables = 0
        self._named: dict[str, dict[str, Any]] = {}
        self._indent = 1

    def layout(self, schema: dict[str, Any]) -> Layout:
        row: list[str] = []
        found = self._record(schema, 0, row)
        self._line(f"add0(({', '.join(row)},))")
        return found

    def compiled(self) -> Callable[..., int]:
        adds = ", ".join(f"add{number}" for number in range(self.lists))
        source = "\n".join([f"def read(data, at, {adds}):", *self._lines, "    return at"])
        given: dict[str, Any] = dict(_GIVEN)
        exec(source, given)  # noqa: S102  # made from a schema of this package, never from what a file holds
        read: Callable[..., int] = given["read"]
        return read

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def _block(self, head: str, *lines: str) -> None:
        self._line(head)
        for line in lines:
            self._line(f"    {line}")

    def _record(self, schema: dict[str, Any], number: int, row: list[str]) -> Layout:
        """Reads a record into variables, whose names are added to the row."""
        self._named[schema["name"]] = self._named[f"{schema.get('namespace')}.{schema['name']}"] = schema
        layout = Layout(number, {}, {}, {})
        for field in schema["fields"]:
            name, kind = field["name"], self._resolved(field["type"])
            if _is(kind, "record"):
                layout.parts[name] = self._record(kind, number, row)
                continue
            place, variable = len(row), self._variable()
            row.append(variable)
            if _is(kind, "array") and _is(items := self._resolved(kind["items"]), "record"):
                layout.items[name] = place, self._records(items, variable)
            else:
                layout.values[name] = place
                self._value(kind, variable)
        return layout

    def _records(self, items: dict[str, Any], count: str) -> Layout:
        number, row = self.lists, list[str]()
        self.lists += 1
        self._length(count)
        if self._most_items is not None:
            self._block(f"if {count} > {self._most_items}:", "raise ValueError('too many records')")
        self._line(f"for _ in range({count}):")
        self._indent += 1
        layout = self._record(items, number, row)
        self._line(f"add{number}(({', '.join(row)},))")
        self._indent -= 1
        self._end(count)
        return layout

    def _value(self, kind: Any, into: str) -> None:
        if isinstance(kind, list):
            self._optional(kind, into)
        elif kind == "long":
            self._line(f"{into} = LONGS[data[at]]")
            self._line("at += 1")
            self._block(
                f"if {into} is None:",
                f"{into} = PAIRS[data[at - 1] & 127 | data[at] << 7]",
                "at += 1",
                f"if {into} is None: {into}, at = long(data, at - 2)",
            )
        elif kind in ("string", "bytes"):
            self._length("n")
            self._line(f"{into} = data[at:at + n]" + (".decode() if n else ''" if kind == "string" else ""))
            self._line("at += n")
        elif kind == "boolean":
            self._block("if data[at] > 1:", "raise ValueError('no boolean')")
            self._line(f"{into} = data[at] == 1")
            self._line("at += 1")
        elif kind == "double":
            self._line(f"{into}, = double(data, at)")
            self._line("at += 8")
        elif kind["type"] == "map":
            self._map(kind, into)
        else:
            self._array(kind["items"], into)

    def _optional(self, kinds: list[Any], into: str) -> None:
        _, inner = kinds
        self._line("at += 1")
        self._line("if data[at - 1] == 2:")
        self._indent += 1
        self._value(inner, into)
        self._indent -= 1
        self._block("elif data[at - 1]:", "raise ValueError('no such branch')")
        self._block("else:", f"{into} = None")

    def _array(self, items: Any, into: str) -> None:
        count = self._variable()
        self._length(count)
        if items == "boolean":
            self._line(f"{into} = data[at:at + {count}]")
            self._block(f"if {into}.strip(b'\\0\\1'):", "raise ValueError('no boolean')")
            self._line(f"{into} = {into} or ()")
            self._line(f"at += {count}")
        elif items == "double":
            self._line(f"{into} = doubles(data, at, {count})")
            self._line(f"at += 8 * {count}")
        else:
            self._each(items, into, count)
        self._end(count)

    def _each(self, items: Any, into: str, count: str) -> None:
        item = self._variable()
        self._line(f"{into} = []")
        self._line(f"for _ in range({count}):")
        self._indent += 1
        self._value(items, item)
        self._line(f"{into}.append({item})")
        self._indent -= 1
        self._line(f"{into} = tuple({into})")

    def _map(self, kind: dict[str, Any], into: str) -> None:
        count, key, item = self._variable(), self._variable(), self._variable()
        self._length(count)
        self._line(f"{into} = {{}}")
        self._line(f"for _ in range({count}):")
        self._indent += 1
        self._value("string", key)
        self._value(kind["values"], item)
        self._line(f"{into}[{key}] = {item}")
        self._indent -= 1
        self._end(count)

    def _length(self, into: str) -> None:
        self._line(f"{into} = SIZES[data[at]]")
        self._line("at += 1")
        self._line(f"if {into} is None: {into}, at = size(data, at - 1)")

    def _end(self, count: str) -> None:
        """Behind the one block of an array or map that is not empty."""
        self._line(f"if {count}:")
        self._block("    if data[at]:", "    raise ValueError('several blocks')")
        self._line("    at += 1")

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _resolved(self, kind: Any) -> Any:
        """Without names of records that are defined earlier, and without logical types."""
        if isinstance(kind, str):
            return self._named.get(kind, kind)
        return kind["type"] if isinstance(kind, dict) and "logicalType" in kind else kind


def _is(kind: Any, name: str) -> bool:
    return isinstance(kind, dict) and kind["type"] == name
