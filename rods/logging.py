"""Logs of one process: lines on standard error, since standard output belongs to results."""

import logging
import sys
import time

_QUIET = ("aiokafka", "kafka", "asyncio", "faust", "mode", "urllib3", "clickhouse_connect", "aiohttp.access")


def configure_logging(role: str, *, verbose: bool = False) -> None:
    """Lines of ``time role level logger: message``, in UTC. Libraries are heard from WARNING on, unless verbose."""
    formatter = logging.Formatter(f"%(asctime)sZ {role} %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.WARNING)
