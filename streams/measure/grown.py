"""A map that grows by one and shares what it holds with its older versions. Pure.

Copying a dict for each of a step's two thousand results cost more than measuring them.
"""

from collections.abc import ItemsView, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import TypeVar

_VALUE = itemgetter(1)
K = TypeVar("K")
V = TypeVar("V")


class Grown(Mapping[K, V]):
    """A value: no version ever changes. Versions share one dict in order of insertion; one of size n sees its first n.

    Adding to the newest version takes constant time; adding to an older one copies what it sees.
    """

    __slots__ = ("_shared", "_size")

    def __init__(self) -> None:
        self._shared: dict[K, tuple[int, V]] = {}
        self._size = 0

    def adding(self, key: K, value: V) -> "Grown[K, V]":
        """This version with one more, whose key it does not hold."""
        grown: Grown[K, V] = Grown()
        grown._shared = self._shared if len(self._shared) == self._size else self._seen()
        grown._shared[key] = (self._size, value)
        grown._size = self._size + 1
        return grown

    def __contains__(self, key: object) -> bool:
        found = self._shared.get(key)  # type: ignore[arg-type]
        return found is not None and found[0] < self._size

    def __getitem__(self, key: K) -> V:
        number, value = self._shared[key]
        if number >= self._size:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[K]:
        return islice(self._shared, self._size)

    def items(self) -> ItemsView[K, V]:
        return self.plain().items()

    def plain(self) -> dict[K, V]:
        """A copy of this version, made without a look-up for each key."""
        return dict(zip(self, map(_VALUE, self._shared.values()), strict=False))

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Grown({dict(self)!r})"

    def _seen(self) -> dict[K, tuple[int, V]]:
        return dict(islice(self._shared.items(), self._size))
