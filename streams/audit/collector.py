"""The cyclic collector, out of the way of a scan.

A scan holds millions of objects, none of which refers back to one that refers to it: all go when nothing counts on them
any more. The collector would walk them again and again all the same.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Keeps the collector from running by itself; it runs again afterwards if it did before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
