"""A broker that dies: started again within limits where its log is on disk, the end of the run where it is not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rods.brokers.embedded import EmbeddedBroker
from rods.brokers.keeper import BrokerKeeper, BrokerLostError
from rods.errors import UserError
from rods.supervise import RestartLimits

BRISK = RestartLimits(restarts=2, seconds=60.0, first_pause=0.0, last_pause=0.0)


class Broker:
    """Dies as often as it is told to."""

    def __init__(self, log_file: Path, deaths: int, refused: int = 0) -> None:
        self.log_file, self.left, self.refused = log_file, deaths, refused
        self.starts = 0
        self.returncode = -9

    @property
    def alive(self) -> bool:
        return self.starts >= self.left

    def start_again(self) -> None:
        if self.refused:
            self.refused -= 1
            raise UserError("port 1 is in use")
        self.starts += 1


def keeper(broker: Any, said: list[str]) -> BrokerKeeper:
    return BrokerKeeper(broker, "runs/a", said.append, BRISK)


async def kept(broker: Broker, said: list[str]) -> BrokerKeeper:
    """After the broker has come to life for good."""
    found = keeper(broker, said)
    watching = asyncio.create_task(found.watch())
    while not broker.alive:
        await asyncio.sleep(0.01)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return found


async def test_a_broker_that_dies_is_started_again_and_counted(tmp_path: Path) -> None:
    said: list[str] = []
    broker = Broker(tmp_path / "log", deaths=2)
    assert (await kept(broker, said)).deaths == 2
    assert said == ["the Kafka broker died of signal SIGKILL; starting it again"] * 2


async def test_a_port_that_is_not_free_yet_is_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    broker = Broker(tmp_path / "log", deaths=1, refused=1)
    await kept(broker, said)
    assert broker.starts == 1
    assert said[1] == "the Kafka broker cannot be started: port 1 is in use"


async def test_one_that_keeps_dying_ends_the_run_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("first\nno space left\n")
    with pytest.raises(BrokerLostError, match=r"keeps dying.*3 times.*rods run --resume runs/a") as caught:
        await keeper(Broker(tmp_path / "log", deaths=9), []).watch()
    assert caught.value.last_words == "first\nno space left"


async def test_an_embedded_one_has_lost_its_log(tmp_path: Path) -> None:
    with pytest.raises(BrokerLostError, match=r"in memory with it.*rods run --resume runs/a"):
        await keeper(EmbeddedBroker(tmp_path / "log"), []).watch()
