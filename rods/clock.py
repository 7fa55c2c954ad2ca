"""The one place where the shell reads the time of day. Pure code gets times as values."""

import time


def now_micros() -> int:
    """Microseconds since the Unix epoch, as events carry them."""
    return time.time_ns() // 1000
