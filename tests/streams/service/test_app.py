import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from streams.errors import OffsetGapError
from streams.service import app as module
from streams.service.app import EXIT_RESTART, build_app
from streams.service.faust_internals import AT_ONCE, PromptTransport
from streams.service.settings import StreamsSettings


@pytest.fixture
def settings(tmp_path: Path) -> StreamsSettings:
    return StreamsSettings("127.0.0.1:1", "trial.", 3, tmp_path)


class Channel:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()


class Stream:
    """Delivers three events and says whether acknowledgement was left to the framework."""

    enable_acks = True

    def __init__(self) -> None:
        self.channel = Channel()

    async def events(self) -> AsyncIterator[int]:
        for number in range(3):
            yield number


class Monitor:
    def __init__(self) -> None:
        self.stream_inbound_time: dict[Any, float] = {}


class App:
    def __init__(self, *, should_stop: bool) -> None:
        self.should_stop = should_stop
        self.monitor = Monitor()


def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    monkeypatch.setattr("logging.shutdown", lambda: None)
    return codes


async def failing(_: Any, number: int) -> None:
    if number == 1:
        raise OffsetGapError("rods.rollouts", 0, 1, 2)


def test_the_app_has_no_table_no_leader_no_web_server_and_its_group_is_under_the_prefix(
    settings: StreamsSettings,
) -> None:
    app = build_app(settings)
    assert app.conf.id == "trial.streams" and list(app.tables) == []
    assert app.conf.topic_disable_leader and not app.conf.topic_allow_declare and not app.conf.web_enabled
    assert not app.conf.stream_wait_empty and app.conf.producer_acks == -1
    assert {agent.concurrency for agent in app.agents.values()} == {1} and len(app.agents) == 2


def test_messages_of_8_mib_pass_both_ways(settings: StreamsSettings) -> None:
    app = build_app(settings)
    assert min(app.conf.consumer_max_fetch_size, app.conf.producer_max_request_size) > 8 * 1024 * 1024
    assert isinstance(app.transport, PromptTransport)


@pytest.mark.parametrize("stopping", [False, True])
async def test_a_service_of_the_framework_that_crashes_ends_the_process_unless_it_stops_anyway(
    settings: StreamsSettings, monkeypatch: pytest.MonkeyPatch, stopping: bool
) -> None:
    codes = exits(monkeypatch)
    app = build_app(settings)
    if stopping:
        app._stopped.set()
    app._crash(ConnectionError("a commit found nobody"))
    assert codes == ([] if stopping else [EXIT_RESTART])
    assert app.crashed or not stopping, "what stops anyway is left to the framework"


@pytest.mark.parametrize("stopping", [False, True])
async def test_an_agent_that_fails_ends_the_process_to_be_restarted_unless_it_stops(
    monkeypatch: pytest.MonkeyPatch, stopping: bool
) -> None:
    codes = exits(monkeypatch)
    stream: Any = Stream()
    await module._stream_of(App(should_stop=stopping), failing)(stream)
    assert codes == ([] if stopping else [EXIT_RESTART]) and stream.enable_acks is False


class Buffered:
    """An event as a stream's buffer holds it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.message = self
        self.tp = ("rods.rollouts", 0)


async def test_what_a_stream_has_buffered_is_taken_with_its_next_event_in_order() -> None:
    app, stream, taken, counts = App(should_stop=False), Stream(), list[Any](), list[int]()
    for number in range(AT_ONCE + 5):
        stream.channel.queue.put_nowait(Buffered(number))

    async def take(_: Any, event: Any) -> None:
        taken.append(event if isinstance(event, int) else (event.number,))

    fake: Any = stream
    await module._stream_of(app, take, counts.append)(fake)
    assert counts == [1 + AT_ONCE, 6, 1]
    assert [event[0] for event in taken if not isinstance(event, int)] == list(range(AT_ONCE + 5))
    assert taken[0] == 0 and set(app.monitor.stream_inbound_time) == {("rods.rollouts", 0)}


async def test_what_runs_beside_the_streams_ends_the_process_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = exits(monkeypatch)
    running: set[asyncio.Task[None]] = set()
    module._start(App(should_stop=False), running, failing(None, 1))
    module._start(App(should_stop=False), running, failing(None, 0))
    while running:
        await asyncio.sleep(0)
    assert codes == [EXIT_RESTART]
