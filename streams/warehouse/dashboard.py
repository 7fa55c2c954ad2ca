"""The dashboard page on loopback: the panels of `panels`, asked for by number; no SQL comes in by HTTP.

Requests under another host name are refused, so that no web page elsewhere can read it through a forged name. Text from
events reaches the page as text only, and the page loads nothing but itself.
"""

import json
import math
import secrets
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import web

from streams.warehouse.errors import WarehouseError
from streams.warehouse.panels import EVALUATION, PANELS, STATUS
from streams.warehouse.store import Warehouse

LOOPBACK = "127.0.0.1"
_PAGE = Path(__file__).with_name("dashboard.html")
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class Dashboard:
    """Serves while inside ``async with``; port 0 takes a free one, `address` says which.

    Entering raises WarehouseError where the port is in use.
    """

    def __init__(self, warehouse: Warehouse, prefix: str, port: int) -> None:
        self._warehouse = warehouse
        self._prefix = prefix
        self._port = port
        self._nonce = secrets.token_urlsafe(16)
        app = web.Application(middlewares=[_guard])
        app.router.add_get("/", self._page)
        app.router.add_get("/run", self._run)
        app.router.add_get(r"/panels/{number:\d{1,3}}", self._panel)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)

    @property
    def address(self) -> str:
        """The page's URL."""
        return f"http://{LOOPBACK}:{self._port}/"

    async def __aenter__(self) -> "Dashboard":
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, LOOPBACK, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise WarehouseError(f"the dashboard's port {self._port} is in use; choose another") from error
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _page(self, _: web.Request) -> web.Response:
        text = _PAGE.read_text().replace("NONCE", self._nonce)
        policy = (
            f"default-src 'none'; script-src 'nonce-{self._nonce}'; style-src 'nonce-{self._nonce}'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": policy})

    async def _run(self, _: web.Request) -> web.Response:
        answer = await self._warehouse.query(STATUS, {"prefix": self._prefix})
        return web.json_response(_status(*answer.rows[0]) if answer.rows else {})

    async def _panel(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number >= len(PANELS):
            raise web.HTTPNotFound
        panel = PANELS[number]
        answer = await self._warehouse.query(panel.sql, {"prefix": self._prefix})
        rows = [[_plain(value) for value in row] for row in answer.rows]
        return web.json_response(
            {
                "title": panel.title,
                "chart": panel.chart.value,
                "needs": panel.needs,
                "columns": answer.columns,
                "rows": rows,
                "panels": len(PANELS),
            }
        )


def _status(run: str, opened: int | None, closed: int | None, step: int | None, rules: str) -> dict[str, Any]:
    """Which run it is and how far. `without`: what its rules turn off, of what panels need."""
    try:
        told = json.loads(rules)
        epochs, learner = told["epochs"], told["learner"]
        evaluates = learner["evaluate_tasks"] > 0 and learner["evaluate_every"] > 0
    except (ValueError, KeyError, TypeError):
        epochs, evaluates = None, True
    finished = closed is not None and closed == epochs
    without = [] if evaluates else [EVALUATION]
    return {"run": run, "epoch": opened, "epochs": epochs, "step": step, "finished": finished, "without": without}


@web.middleware
async def _guard(request: web.Request, handler: Any) -> web.StreamResponse:
    if request.host.rpartition(":")[0] not in (LOOPBACK, "localhost"):
        raise web.HTTPForbidden
    response: web.StreamResponse = await handler(request)
    response.headers.update(_HEADERS)
    return response


def _plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
