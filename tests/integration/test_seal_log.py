"""A worker's state from `rods.seals` on a live broker, read from where it has to be."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventlog.client import log_producer
from rods.brokers.embedded import EmbeddedBroker, create_topics
from schemas.codec import encode
from schemas.topics import Topic
from streams.measure.state import MeasureState
from streams.seals import reader as seal_log
from streams.seals.reader import SealLog, find_anchors, read_seals
from streams.seals.recovery import Recovery
from streams.select.fold import SelectState, evolve
from streams.service.settings import StreamsSettings
from tests.log_writing import send_all
from tests.streams.rollout_log import barrier, expected, folded, result, seals

PARTITIONS, STEPS = 2, 40


def partition_seals(partition: int) -> list[Any]:
    """Ten steps an epoch; the last epoch is open."""
    events: list[Any] = []
    for step in range(1, STEPS - 3):
        task = f"t{partition}{step % 7}"
        events.append(result(task, passed=(0, 2, 1, step % 3), step=step))
        place: dict[str, Any] = {"partition": partition, "partitions": PARTITIONS}
        epoch = 1 + (step - 1) // 10
        events.append(barrier(expected(task, step=step), step=step, epoch=epoch, last=step % 10 == 0, **place))
    return seals(folded(events, MeasureState(partition)))


def topic() -> list[bytes]:
    log: list[Any] = [seal for pair in zip(*map(partition_seals, range(PARTITIONS)), strict=True) for seal in pair]
    whole: list[bytes] = []
    state = SelectState()
    for seal in log:
        for event in (seal, None):
            event = event or state.proposed
            if event is not None:
                state = evolve(state, len(whole), event).state
                whole.append(encode(event))
    return whole


@pytest.fixture
async def settings(tmp_path: Path) -> AsyncIterator[StreamsSettings]:
    with EmbeddedBroker(tmp_path / "broker.log") as broker:
        await create_topics(broker.address, "rods.", PARTITIONS)
        async with log_producer(broker.address) as producer:
            name = Topic.SEALS.named("rods.")
            await send_all(producer, name, 0, [("run", value) for value in topic()])
        yield StreamsSettings(broker.address, "rods.", PARTITIONS, tmp_path)


async def test_reading_from_the_last_whole_states_gives_what_reading_everything_gives(
    settings: StreamsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_log, "WINDOW", 11)
    plain = SealLog({number: Recovery(MeasureState(number)) for number in range(PARTITIONS)})
    for offset, value in enumerate(topic()):
        plain.take(offset, value)
    anchors = await find_anchors(settings, Topic.SEALS.named("rods."), range(PARTITIONS), plain.select.next_offset)
    assert all(offset > 80 for offset in anchors.values())
    short = await read_seals(settings, range(PARTITIONS), since=plain.select.next_offset)
    assert short.states == plain.states and short.select == plain.select
    assert max(short.seeds) == max(plain.seeds) and len(short.seeds) < len(plain.seeds)
    all_seeds = await read_seals(settings, [1], since=0)
    assert all_seeds.seeds == plain.seeds and all_seeds.states == {1: plain.states[1]}
    measures = await read_seals(settings, [0], since=None)
    assert measures.states == {0: plain.states[0]} and measures.seeds == {}
