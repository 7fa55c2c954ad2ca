"""`rods dead-letters` on a live broker: what was refused is listed, and what is whole goes back where it came from."""

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eventlog.client import log_producer
from eventlog.dead_letters import refusal, refused_bytes
from eventlog.reader import read_all
from eventlog.writer import send
from rods.brokers.dead_letters import Fate, fate_of
from rods.brokers.embedded import create_topics
from rods.cli.main import app
from rods.errors import UserError
from schemas.codec import encode
from schemas.pool import EventRefused
from schemas.topics import Topic
from tests.rods.made_run import closed
from tests.streams.rollout_log import barrier, result

RUNNER = CliRunner()
POISON = b"\x00 not an event"


def letter(topic: str, partition: int, offset: int, value: bytes) -> EventRefused:
    return refused_bytes(refusal(topic, partition, offset, value, "not an event \x1b[2J"), 1.0)


@pytest.fixture
async def prefix(broker: str, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Topics with three letters: one whole, one cut, one of a topic with one writer."""
    name = "".join(letter for letter in request.node.name if letter.isalnum())[-40:] + "."
    await create_topics(broker, name, 2)
    async with log_producer(broker) as producer:
        for event in (
            letter(f"{name}rollouts", 1, 7, POISON),
            letter(f"{name}rollouts", 0, 8, bytes(70_000)),
            letter(f"{name}pool", 0, 9, POISON),
        ):
            await send(producer, Topic.DEAD_LETTERS.named(name), 0, event.topic, encode(event))
    yield name


async def invoked(*arguments: str) -> Result:
    import asyncio

    return await asyncio.to_thread(RUNNER.invoke, app, ["dead-letters", *arguments])


def rows(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


async def values(broker: str, topic: str, partition: int) -> list[bytes | None]:
    return [record.value async for record in read_all(broker, topic, partition)]


async def test_letters_are_listed_with_place_reason_and_fate(broker: str, prefix: str) -> None:
    found = rows(await invoked("list", "--broker", broker, "--prefix", prefix, "--json"))
    assert [row["number"] for row in found] == [0, 1, 2]
    assert [row["fate"] for row in found] == ["replayable", "cut", "one_writer"]
    first = found[0]
    assert (first["topic"], first["partition"], first["offset"]) == (f"{prefix}rollouts", 1, 7)
    assert first["sha256"] == hashlib.sha256(POISON).hexdigest()
    assert first["kept_bytes"] == len(POISON)


async def test_text_of_the_log_moves_no_cursor(broker: str, prefix: str) -> None:
    result = await invoked("list", "--broker", broker, "--prefix", prefix)
    assert "not an event ?[2J" in result.stdout
    assert "\x1b" not in result.stdout


async def test_a_whole_letter_goes_back_to_its_partition_byte_for_byte(broker: str, prefix: str) -> None:
    result = await invoked("replay", "0", "--broker", broker, "--prefix", prefix, "--json")
    assert result.exit_code == 0, result.output
    assert rows(result)[0]["replayed_offset"] == 0
    assert await values(broker, f"{prefix}rollouts", 1) == [POISON]


async def test_all_of_them_leaves_what_cannot_go_back_and_says_so(broker: str, prefix: str) -> None:
    result = await invoked("replay", "--all", "--broker", broker, "--prefix", prefix, "--json")
    assert result.exit_code == 1
    assert [row["replayed_offset"] for row in rows(result)] == [0, None, None]
    assert await values(broker, f"{prefix}rollouts", 0) == []
    assert await values(broker, f"{prefix}pool", 0) == []


@pytest.mark.parametrize(("number", "word"), [("1", "64 KiB"), ("2", "one writer"), ("9", "no dead letter 9")])
async def test_one_that_cannot_go_back_is_refused_before_anything_is_written(
    broker: str, prefix: str, number: str, word: str
) -> None:
    result = await invoked("replay", "0", number, "--broker", broker, "--prefix", prefix)
    assert isinstance(result.exception, UserError)
    assert word in str(result.exception)
    assert await values(broker, f"{prefix}rollouts", 1) == []


async def test_numbers_or_all_must_be_said(broker: str) -> None:
    for arguments in ((), ("0", "--all")):
        result = await invoked("replay", *arguments, "--broker", broker)
        assert isinstance(result.exception, UserError)


def test_a_letter_that_names_another_prefix_stays() -> None:
    assert fate_of(letter("other.rollouts", 0, 0, POISON), "rods.", closed=0) is Fate.ONE_WRITER
    assert fate_of(letter("rods.rollouts", 0, 0, POISON), "rods.", closed=0) is Fate.REPLAYABLE


@pytest.mark.parametrize(("last", "fate"), [(1, Fate.OPEN_STEP), (2, Fate.REPLAYABLE)])
def test_a_result_stays_until_its_step_is_closed(last: int, fate: Fate) -> None:
    for event in (result(step=2), barrier(step=2)):
        assert fate_of(letter("rods.rollouts", 0, 0, encode(event)), "rods.", last) is fate


async def test_a_closed_step_is_read_from_the_log(broker: str, prefix: str) -> None:
    refused = letter(f"{prefix}rollouts", 1, 3, encode(result(step=2)))
    async with log_producer(broker) as producer:
        await send(producer, Topic.DEAD_LETTERS.named(prefix), 0, refused.topic, encode(refused))
        asked = ("list", "--broker", broker, "--prefix", prefix, "--json")
        assert rows(await invoked(*asked))[-1]["fate"] == "open_step"
        await send(producer, Topic.EPOCHS.named(prefix), 0, "run", encode(closed(1, 2, trained=1)))
        assert rows(await invoked(*asked))[-1]["fate"] == "replayable"


def test_a_prefix_without_topics_is_one_sentence(broker: str, tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["dead-letters", "list", "--broker", broker, "--prefix", "nothing."])
    assert isinstance(result.exception, UserError)
