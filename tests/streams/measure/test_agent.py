import asyncio
import hashlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from schemas.codec import encode
from schemas.topics import Topic
from streams.errors import OffsetGapError
from streams.measure.agent import Arrived, MeasureAgent
from streams.measure.sealing import Sealing
from streams.measure.state import MeasureState
from streams.service.notices import Notice
from streams.service.session import MeasurePosition, Session
from tests.streams.live_stream import Live, delivery, until
from tests.streams.rollout_log import barrier, expected, result, started


class Measure(Live):
    def __init__(self, state: MeasureState | None = None, *, sealed: int = 0) -> None:
        super().__init__(Session(1, {0: MeasurePosition(state or MeasureState(0), sealed)}, None))
        self.notices: list[Notice] = []
        self.begun: list[Coroutine[Any, Any, None]] = []
        self.sealing = Sealing(self.outbox, "rods.", self.begun.append, self.stream.acknowledge)
        self.agent = MeasureAgent(self.gate, self.outbox, self.sealing, notify=self.notices.append)

    async def take(self, offset: int, event: Any, *, generation: int = 1, partition: int = 0) -> None:
        """Takes an event and writes the seal that it led to."""
        arrived = delivery(Topic.ROLLOUTS, offset, event, generation=generation, partition=partition)
        await self.agent.take(arrived)
        await self.sealed()

    async def sealed(self) -> None:
        for begun in self.begun:
            await begun
        self.begun.clear()


async def test_a_view_leaves_by_itself_and_acknowledges_nothing() -> None:
    live = Measure()
    await live.take(0, result())
    await until(lambda: bool(live.producer.sent))
    assert [view.task for view in live.producer.events(Topic.MEASUREMENTS)] == ["t"]
    assert live.stream.acked == []


async def test_a_seal_acknowledges_everything_before_it() -> None:
    live = Measure()
    for offset, event in enumerate([result(), result(), barrier(expected())]):
        await live.take(offset, event)
    assert live.stream.acked == [0, 1, 2]
    assert [seal.step for seal in live.producer.events(Topic.SEALS)] == [1]


async def test_a_message_of_an_older_generation_is_dropped() -> None:
    live = Measure()
    await live.take(0, result(), generation=0)
    assert live.producer.sent == [] and live.session.measure[0].state == MeasureState(0)


async def test_a_message_of_a_partition_that_is_not_held_is_dropped() -> None:
    live = Measure()
    await live.take(0, result(), partition=3)
    assert live.producer.sent == []


async def test_an_agent_waits_for_the_session_after_a_rebalance() -> None:
    live = Measure()
    live.gate.close()
    task = asyncio.create_task(live.take(0, result()))
    await asyncio.sleep(0.01)
    assert not task.done()
    live.gate.open(live.session)
    await task
    await live.outbox.settled()
    assert len(live.producer.sent) == 1


async def test_offsets_that_a_recovered_seal_covers_are_acknowledged_and_skipped() -> None:
    live = Measure(MeasureState(0, next_offset=5), sealed=5)
    await live.take(3, result())
    assert live.stream.acked == [3] and live.producer.sent == []


async def test_a_second_delivery_that_no_seal_covers_is_not_acknowledged() -> None:
    live = Measure()
    await live.take(0, result())
    await live.take(0, result())
    await live.outbox.settled()
    assert live.stream.acked == [] and len(live.producer.sent) == 1


async def test_a_skipped_offset_is_an_error() -> None:
    with pytest.raises(OffsetGapError):
        await Measure().take(4, result())


async def test_a_skipped_event_is_read_from_the_log_and_folded_first() -> None:
    live = Measure()

    async def log(partition: int, offsets: range) -> AsyncIterator[Arrived]:
        for offset in offsets:
            yield Arrived("rods.rollouts", partition, offset, encode(result(step=1 + offset)), 1.0)

    live.agent = MeasureAgent(live.gate, live.outbox, live.sealing, log)
    await live.take(1, barrier(expected()))
    (seal,) = live.producer.events(Topic.SEALS)
    assert seal.groups[0].execution == "e1" and live.session.measure[0].state.next_offset == 2
    assert live.stream.acked == [1]


async def test_an_unknown_fingerprint_stops_the_partition() -> None:
    live = Measure()
    await live.take(0, b"\xc3\x01" + b"12345678" + b"body")
    await live.take(1, barrier())
    assert live.session.measure[0].stopped and live.notices == [Notice.UNKNOWN_SCHEMA]
    assert live.producer.sent == [] and live.stream.acked == []


async def test_events_of_an_older_learner_are_told() -> None:
    live = Measure()
    for offset, event in enumerate([started(2), barrier(expected(), generation=1), result()]):
        await live.take(offset, event)
    assert live.notices == [Notice.SUPERSEDED]


async def test_poison_goes_to_the_dead_letters_once_and_is_acknowledged_with_the_seal() -> None:
    live = Measure()
    poison = b"\x00" * 100_000
    await live.take(0, poison)
    assert live.stream.acked == []
    await live.take(1, barrier())
    (letter,) = live.producer.events(Topic.DEAD_LETTERS)
    assert (letter.topic, letter.partition, letter.offset) == ("rods.rollouts", 0, 0)
    assert letter.sha256 == hashlib.sha256(poison).hexdigest() and len(letter.value) == 65536
    assert letter.envelope.occurred_at == 1_700_000_000_123_000
    assert live.stream.acked == [0, 1]


async def test_a_record_without_a_value_goes_to_the_dead_letters() -> None:
    live = Measure()
    empty = delivery(Topic.ROLLOUTS, 0, b"")
    empty.message.value = None
    await live.agent.take(empty)
    await live.take(1, barrier())
    assert [letter.offset for letter in live.producer.events(Topic.DEAD_LETTERS)] == [0]
    assert live.stream.acked == [0, 1]


async def test_a_refused_result_is_a_dead_letter_with_its_own_offset() -> None:
    live = Measure()
    wrong = result(passed=(1, 1))
    await live.take(0, wrong)
    await live.take(1, barrier(expected()))
    (letter,) = live.producer.events(Topic.DEAD_LETTERS)
    assert letter.offset == 0 and "wrong K" in letter.reason
    assert letter.envelope.causation_id == wrong.envelope.event_id
