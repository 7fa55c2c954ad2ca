import socket

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from streams.errors import StreamError
from streams.service.health import LOOPBACK, Health


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


async def fetched(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{LOOPBACK}:{port}{path}") as answer:
        return answer.status, await answer.text()


async def test_figures_health_and_readiness_are_told_on_loopback_and_nothing_else() -> None:
    registry = CollectorRegistry()
    Counter("steps", "steps", registry=registry).inc()
    ready = [False]
    health = Health(registry, lambda: ready[0])
    port = await health.start(free_port())
    try:
        assert "steps_total 1.0" in (await fetched(port, "/metrics"))[1]
        assert (await fetched(port, "/healthz"))[0] == 200
        assert (await fetched(port, "/readyz"))[0] == 503
        ready[0] = True
        assert (await fetched(port, "/readyz"))[0] == 200
        assert (await fetched(port, "/tables"))[0] == 404
    finally:
        await health.stop()


async def test_a_second_worker_takes_the_next_port_and_one_too_many_is_told() -> None:
    first, second, third = (Health(CollectorRegistry(), lambda: True) for _ in range(3))
    port = await first.start(free_port())
    try:
        assert await second.start(port, ports=8) > port
        with pytest.raises(StreamError, match="set metrics_port"):
            await third.start(port)
    finally:
        for health in (first, second, third):
            await health.stop()
