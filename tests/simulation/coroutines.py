"""Coroutines driven by hand: the simulation decides who goes on, and when."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any


class Until:
    """Awaited, it returns once `ready` holds. Whoever drives the coroutine asks `ready` before going on."""

    __slots__ = ("ready",)

    def __init__(self, ready: Callable[[], bool]) -> None:
        self.ready = ready

    def __await__(self) -> Generator["Until", None, None]:
        while not self.ready():
            yield self


class Turn(Until):
    """Awaited, it lets others go first."""

    def __init__(self) -> None:
        super().__init__(lambda: True)

    def __await__(self) -> Generator[Until, None, None]:
        yield self


class Task:
    """A coroutine and what it waits for."""

    __slots__ = ("_coroutine", "_waiting", "done")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._waiting: Until | None = None
        self.done = False

    def runnable(self) -> bool:
        return not self.done and (self._waiting is None or self._waiting.ready())

    def step(self) -> None:
        """Goes on to the next wait. Raises what the coroutine raises."""
        try:
            self._waiting = self._coroutine.send(None)
        except StopIteration:
            self.done = True
        except BaseException:
            self.done = True
            raise

    def drop(self) -> None:
        """The process is gone."""
        self.done = True
        self._coroutine.close()
