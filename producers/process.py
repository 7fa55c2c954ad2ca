"""How a worker's process ends: a signal cancels its work, and a watchdog ends what does not end by itself."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from eventlog.standstill import loop_watched

logger = logging.getLogger(__name__)

GRACE_SECONDS = 4.0
EXIT_BLOCKED = 70
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_until_signalled(work: Callable[[], Awaitable[None]], stuck: Callable[[], bool]) -> None:
    """Runs `work` until it ends or the process is told to (SIGTERM, SIGINT), in which case it is cancelled.

    Returns after a signal; where `stuck()` says that a thread still computes, or the cancelled work takes longer than
    `GRACE_SECONDS`, the process ends here with exit code 0; where its event loop is blocked, with code 70. Raises what
    `work` raises, the first where it is a group.
    """
    signalled = asyncio.run(_main(work))
    if signalled and stuck():
        _end_process()


async def _main(work: Callable[[], Awaitable[None]]) -> bool:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work())
    signalled = False

    def on_signal() -> None:
        nonlocal signalled
        if signalled:
            return
        signalled = True
        task.cancel()
        watchdog = threading.Timer(GRACE_SECONDS, _end_process)
        watchdog.daemon = True
        watchdog.start()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        with loop_watched(_end_blocked), suppress(asyncio.CancelledError):
            await task
    except BaseExceptionGroup as group:
        if not signalled:
            raise _first(group) from group
    return signalled


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _end_process() -> None:
    logging.shutdown()
    os._exit(0)


def _end_blocked(error: Exception) -> None:
    """Ends the process at once, to be started again."""
    logger.critical("the worker ends: %s", error)
    logging.shutdown()
    os._exit(EXIT_BLOCKED)
