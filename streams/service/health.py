"""What a streams worker tells who watches it: `/metrics`, `/healthz`, `/readyz`, on loopback.

`/healthz` answers while the event loop turns. `/readyz` answers 200 while the worker holds an assignment whose state is
rebuilt, and 503 in between.
"""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from streams.errors import StreamError

LOOPBACK = "127.0.0.1"


class Health:
    """The endpoints of one process. Entered once; closes with the process."""

    def __init__(self, registry: CollectorRegistry, ready: Callable[[], bool]) -> None:
        self._registry = registry
        self._ready = ready
        self._runner: web.AppRunner | None = None

    async def start(self, port: int, ports: int = 1, host: str = LOOPBACK) -> int:
        """Listens on the first free of so many ports from `port` on, since workers of a run share their settings.

        Returns the port. Raises StreamError where none is free: who asked for figures should know that there are none.
        """
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        for candidate in range(port, port + ports):
            try:
                await web.TCPSite(self._runner, host, candidate).start()
            except OSError:
                continue
            return candidate
        await self.stop()
        raise StreamError(f"no port for metrics is free on {host} from {port} to {port + ports - 1}; set metrics_port")

    async def stop(self) -> None:
        """Ends the endpoints. Does nothing where they never were."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if self._ready():
            return web.Response(text="ready\n")
        return web.Response(status=503, text="no partitions yet, or their state is being rebuilt\n")
