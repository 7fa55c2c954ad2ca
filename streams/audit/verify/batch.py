"""Events of one kind as columns: what the checks of `verify` look at."""

from collections.abc import Callable, Sequence
from typing import Any


class Batch:
    """Plain records of one type, one after the other, as `schemas.codec.decode_plain` gives them."""

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        self.records = records

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a field."""
        return [record[name] for record in self.records]

    def counts(self, name: str) -> list[int]:
        """Of a field that holds records, how many each record has."""
        return [len(record[name]) for record in self.records]

    def part(self, name: str) -> "Batch":
        """The nested records of a field, one for each record."""
        return Batch(self[name])

    def items(self, name: str) -> "Batch":
        """The records of a field that holds several, of all records one after the other."""
        return Batch([item for record in self.records for item in record[name]])


Check = Callable[[Batch], tuple[int, str] | None]
"""Takes records; the position of one that is wrong and why, in a few words, or None where all are right."""
