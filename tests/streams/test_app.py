from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from streams import app as module
from streams.app import EXIT_RESTART, build_app
from streams.errors import OffsetGapError
from streams.settings import StreamsSettings
from streams.transport import PromptTransport


@pytest.fixture
def settings(tmp_path: Path) -> StreamsSettings:
    return StreamsSettings("127.0.0.1:1", "trial.", 3, tmp_path)


class Stream:
    """Delivers three events and says whether acknowledgement was left to the framework."""

    enable_acks = True

    async def events(self) -> AsyncIterator[int]:
        for number in range(3):
            yield number


class App:
    def __init__(self, *, should_stop: bool) -> None:
        self.should_stop = should_stop


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


async def test_an_agent_that_fails_ends_the_process_to_be_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = exits(monkeypatch)
    stream: Any = Stream()
    await module._stream_of(App(should_stop=False), failing)(stream)
    assert codes == [EXIT_RESTART] and stream.enable_acks is False


async def test_an_agent_that_fails_while_the_process_stops_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = exits(monkeypatch)
    stream: Any = Stream()
    await module._stream_of(App(should_stop=True), failing)(stream)
    assert codes == []
