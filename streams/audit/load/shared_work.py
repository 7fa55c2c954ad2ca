"""Jobs that other processes take one by one from the front, while the caller does something else; once it is free, it
takes them from the back. So no process waits for another until the last job.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
Job = Callable[[], T]
"""One that can be sent to a process."""


class SharedWork(Generic[T]):
    """The jobs and what they come to. pool: None where the caller is to do them all."""

    def __init__(self, jobs: Sequence[Job[T]], pool: ProcessPoolExecutor | None, processes: int) -> None:
        self._waiting = deque(enumerate(jobs))
        self._sent: dict[int, Future[T]] = {}
        self._lock = Lock()
        self._pool = pool
        for _ in range(processes if pool else 0):
            self._send()

    def results(self) -> list[T]:
        """In the order of the jobs; the caller works on those that wait. Raises what a job raises."""
        own: dict[int, T] = {}
        while (taken := self._taken_back()) is not None:
            own[taken[0]] = taken[1]()
        sent = {number: future.result() for number, future in self._sent.items()}
        return [result for _, result in sorted({**own, **sent}.items())]

    def forget(self) -> None:
        """No further job is begun."""
        with self._lock:
            self._waiting.clear()

    def _taken_back(self) -> tuple[int, Job[T]] | None:
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def _send(self, _: "Future[T] | None" = None) -> None:
        """Sends the next job that waits, and another one when it is done."""
        with self._lock:
            if not self._waiting or self._pool is None:
                return
            number, job = self._waiting.popleft()
            self._sent[number] = future = self._pool.submit(job)
        future.add_done_callback(self._send)


@contextmanager
def shared(jobs: Sequence[Job[T]], processes: int) -> Iterator[SharedWork[T]]:
    """Jobs for so many processes, this one among them."""
    if processes <= 1 or not jobs:
        yield SharedWork(jobs, None, 0)
        return
    others = min(processes - 1, len(jobs))
    with ProcessPoolExecutor(others, mp_context=get_context("spawn")) as pool:
        work = SharedWork(jobs, pool, others)
        try:
            yield work
        finally:
            work.forget()
